// `rondo explain --selection`: which algorithm every operation runs up to which size.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/tuning.hpp"

namespace rondo::cli {

/// That this process may use.
uint32_t cores_here() noexcept;

struct SelectionOf {
  uint32_t world = 1;
  std::string transport = "tcp", tuning;  // a file of rondo tune, or none
  uint32_t cores = cores_here();          // of a node
  std::vector<uint32_t> nodes = {};       // of every rank; empty: all on one
};

/// A line for each operation and range of sizes.
void print_selection(const SelectionOf& about, const engine::Tuning& tuning, const char* indent = "");
/// Prints it with the file of `given`; the exit code.
int explain_selection(const SelectionOf& given);

}  // namespace rondo::cli
