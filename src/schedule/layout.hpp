// Where a chunk lies in each buffer, in elements. A chunk may be empty.
#pragma once
#include <cassert>
#include <vector>

#include "schedule/step.hpp"

namespace rondo::schedule {

/// Where the ranks' parts begin in an uneven operation: a number for each rank, and the end. In
/// reduce_scatter and all_gather the parts of the whole vector, twice; in all_to_all those of this rank's
/// buffers, by the rank that they go to and come from; in send_recv one part each.
struct Parts {
  std::vector<uint64_t> input, output;
  friend bool operator==(const Parts&, const Parts&) = default;
};

/// Places the chunks of one rank's call. `count` is the whole vector: the input of a reduce_scatter or a
/// scatter, the output of an all_gather or a gather, either buffer of an all_to_all (a multiple of the
/// world). Without Parts chunks of the same vector differ by at most one element.
class Layout {
 public:
  struct Place {
    Rank rank;
    uint32_t world;
  };
  Layout(Operation operation, uint64_t count, uint32_t chunks, const Place& place,
         const Parts* parts = nullptr) noexcept
      : operation_(operation), count_(count), chunks_(chunks), place_(place), parts_(parts) {
    assert(parts == nullptr || operation == Operation::send_recv || parts->input.size() == place.world + 1);
  }

  Extent extent(Buffer buffer, uint32_t chunk) const noexcept {
    if (operation_ == Operation::all_to_all) return exchanged(buffer, chunk);
    if (operation_ == Operation::send_recv) return parts_ ? part(buffer, 0) : Extent{0, count_};
    const Extent whole = parts_ ? part(buffer, chunk) : shard(count_, chunks_, chunk);
    if (!is_shard(operation_, buffer)) return whole;
    return {0, chunk == place_.rank ? whole.count : 0};
  }

 private:
  Extent part(Buffer buffer, uint32_t index) const noexcept {
    const auto& first = buffer == Buffer::input ? parts_->input : parts_->output;
    return {first[index], first[index + 1] - first[index]};
  }
  Extent exchanged(Buffer buffer, uint32_t chunk) const noexcept {
    const Rank from = chunk / place_.world, to = chunk % place_.world;
    if ((buffer == Buffer::input ? from : to) != place_.rank) return {};
    const Rank other = buffer == Buffer::input ? to : from;
    return parts_ ? part(buffer, other) : shard(count_, place_.world, other);
  }

  Operation operation_;
  uint64_t count_;
  uint32_t chunks_;
  Place place_;
  const Parts* parts_;
};

}  // namespace rondo::schedule
