// rondo doctor: says what is wrong with this machine for a job, why it matters, and the fix.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace rondo::cli {

/// Adds the subcommand. When the command line chooses it, `action` becomes what it does; `action` returns the
/// exit code: 0 nothing is wrong, 1 there is a problem.
CLI::App* add_doctor(CLI::App& app, std::function<int()>& action);

}  // namespace rondo::cli
