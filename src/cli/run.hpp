// rondo run: starts N copies of a program as the ranks of a job on this machine.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace rondo::cli {

CLI::App* add_run(CLI::App& app, std::function<int()>& action);

/// The arguments of the rondo command, last first as CLI11 wants them. CLI11 takes a "--" before PROGRAM to
/// end the subcommand as well; add_run looks for the mark that this puts in its place.
std::vector<std::string> protect_separator(std::vector<std::string> arguments);

}  // namespace rondo::cli
