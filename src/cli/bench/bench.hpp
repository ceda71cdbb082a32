// rondo bench: times and checks one operation over a range of sizes.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace rondo::cli {

/// Adds the subcommand. When the command line chooses it, `action` becomes what it does; `action` returns the
/// exit code: 0 right, 1 wrong data, 2 usage, 3 run-time failure, 4 deadline.
/// `arguments` are the whole command line's: what a process that is not a rank yet starts its ranks with.
CLI::App* add_bench(CLI::App& app, const std::vector<std::string>& arguments, std::function<int()>& action);

}  // namespace rondo::cli
