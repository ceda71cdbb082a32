// Sizes on the command line: bytes, or a number with K, M or G.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace rondo::cli {

CLI::Option* add_size(CLI::App& app, const std::string& flags, uint64_t& target, const std::string& help);

}  // namespace rondo::cli
