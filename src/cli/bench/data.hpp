// Values that make every result exactly predictable: what rank r holds at index i, and what must come out.
#pragma once
#include <cstdint>

#include "cli/bench/options.hpp"

namespace rondo::bench {

/// Fills elements [first, first + count) of rank `rank`'s vector into `target`. `round` changes the values,
/// so that what an earlier round left behind is seen.
void fill(std::byte* target, const Extent& extent, DataType type, Reduction reduction, Rank rank,
          uint32_t round);

/// What one rank has of a vector of `count` elements. The buffers begin at `first` of it; those of an
/// all_to_all and a send_recv are vectors of their own.
struct Place {
  uint64_t count;
  Rank rank;
  uint32_t world;

  /// Rank r's part in an operation.
  Extent part(const BenchOptions& options, Rank r) const;
  Extent input(const BenchOptions& options) const;
  Extent output(const BenchOptions& options) const;
};

/// How many of the elements in this rank's output are not what the operation gives.
uint64_t count_wrong(const std::byte* result, const BenchOptions& options, const Place& place,
                     uint32_t round);

}  // namespace rondo::bench
