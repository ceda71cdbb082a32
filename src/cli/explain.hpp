// rondo explain: prints the steps of a schedule.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace rondo::cli {

/// Adds the subcommand. When the command line chooses it, `action` becomes what it does; `action` returns the
/// exit code.
CLI::App* add_explain(CLI::App& app, std::function<int()>& action);

}  // namespace rondo::cli
