// What a program computes, as expression trees.
#pragma once
#include "schedule/program.hpp"
#include "schedule/values.hpp"

namespace rondo::schedule {

/// What the ranks end with.
struct Meaning {
  Values values;
  std::vector<Value> chunks;  // all_reduce, reduce_scatter: the result of each chunk, equal wherever it is
  std::optional<Fault> wrong;
};

/// Carries the program out on symbolic values and checks
///  - that nothing is read before it is written,
///  - that contributions travel narrow, partials wide and results narrow,
///  - that only complete sums are finished, once, and nothing else is stored in an output,
///  - that every output chunk ends as its operation demands, with each contribution exactly once and, where
///    several ranks hold it, summed in the same order. A barrier's tokens may hold a rank more than once.
Meaning interpret(const Program& program);

}  // namespace rondo::schedule
