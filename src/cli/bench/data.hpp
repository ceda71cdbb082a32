// Values that make every result exactly predictable: what rank r holds at index i, and what must come out.
#pragma once
#include <cstdint>

#include "cli/bench/options.hpp"

namespace rondo::bench {

/// Fills elements [first, first + count) of rank `rank`'s vector into `target`. `round` changes the values,
/// so that what an earlier round left behind is seen.
void fill(std::byte* target, const Extent& extent, DataType type, Reduction reduction, Rank rank,
          uint32_t round);

/// How many of the elements [first, first + count) in `result` are not what `operation` gives over `world`
/// ranks.
uint64_t count_wrong(const std::byte* result, const Extent& extent, const BenchOptions& options,
                     uint64_t count, uint32_t world, uint32_t round);

}  // namespace rondo::bench
