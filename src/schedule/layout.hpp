// Where a chunk lies in each buffer, in elements. A chunk may be empty; neighbours differ by at most one
// element.
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

/// Places the chunks of one rank's call. `count` is the whole vector: the input of a reduce_scatter, the
/// output of an all_gather. A shard buffer (reduce_scatter's output, all_gather's input) holds only chunk
/// `rank`, at 0.
class Layout {
 public:
  Layout(Operation operation, uint64_t count, uint32_t chunks, Rank rank) noexcept
      : operation_(operation), count_(count), chunks_(chunks), rank_(rank) {}

  Extent extent(Buffer buffer, uint32_t chunk) const noexcept {
    const Extent whole = shard(count_, chunks_, chunk);
    if (!is_shard(buffer)) return whole;
    return {0, chunk == rank_ ? whole.count : 0};
  }

 private:
  bool is_shard(Buffer buffer) const noexcept {
    return (operation_ == Operation::reduce_scatter && buffer == Buffer::output) ||
           (operation_ == Operation::all_gather && buffer == Buffer::input);
  }

  Operation operation_;
  uint64_t count_;
  uint32_t chunks_;
  Rank rank_;
};

}  // namespace rondo::schedule
