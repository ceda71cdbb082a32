// `rondo explain --selection`: which algorithm every operation runs up to which size.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/step.hpp"

namespace rondo::cli {

/// That this process may use.
uint32_t cores_here() noexcept;

struct SelectionOf {
  uint32_t world = 1;
  std::string transport = "tcp", tuning;  // a file of rondo tune, or none
  uint32_t cores = cores_here();          // of a node
  std::vector<uint32_t> nodes = {};       // of every rank; empty: all on one
  // Of which calls; of operations that move, the first two are enough.
  std::optional<schedule::Operation> operation = {};  // nothing: all
  DataType type = DataType::f32;
  Reduction reduction = Reduction::sum;
  bool reproducible = false;
};

/// Whether the text of a file of rondo tune is for such a job.
bool is_tuned_by(const SelectionOf& about, const std::string& table);
/// A line for each operation and range of sizes. `table` is that text, or empty; one for another job does not count.
void print_selection(const SelectionOf& about, const std::string& table, const char* indent = "");
/// Prints it with the file of `given`; the exit code.
int explain_selection(const SelectionOf& given);

}  // namespace rondo::cli
