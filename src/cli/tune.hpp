// `rondo tune`: measures every algorithm of every operation on this machine and writes what is quickest.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace rondo::cli {

CLI::App* add_tune(CLI::App& app, const std::vector<std::string>& arguments, std::function<int()>& action);

}  // namespace rondo::cli
