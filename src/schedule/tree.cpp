#include "schedule/tree.hpp"

#include <bit>

namespace rondo::schedule {
namespace {

struct Tree {
  Rank rank;
  const Shape& shape;
  const Emit& emit;

  uint32_t levels() const { return uint32_t(std::bit_width(shape.world - 1)); }
  Rank holder(uint32_t level, uint32_t node) const {
    return shape.root >> level == node ? shape.root : node << level;
  }
  bool exists(uint32_t level, uint32_t node) const { return uint64_t(node) << level < shape.world; }

  // The two holders whose nodes become one at `level`, if this rank is one of them: visit(level, other, low),
  // where the lower node's holder is `low`.
  template <class Visit>
  void each_merge(uint32_t level, const Visit& visit) const {
    const uint32_t node = rank >> (level + 1), left = 2 * node, right = left + 1;
    if (!exists(level, right)) return;
    const Rank low = holder(level, left), high = holder(level, right);
    if (rank != low && rank != high) return;
    visit(rank == low ? high : low, holder(level + 1, node));
  }
};

}  // namespace

void tree_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  const Tree tree{rank, shape, emit};
  if (shape.world == 1)
    return emit({StepKind::copy, flag::finish, Buffer::input, Buffer::output, 0, 1, 0, 0});
  Buffer own = Buffer::input;  // where this rank's node is
  for (uint32_t level = 0; level < tree.levels(); level++) {
    tree.each_merge(level, [&](Rank other, Rank keeper) {
      const auto round = uint16_t(level);
      const uint8_t wide = own == Buffer::accumulator ? flag::wide : 0;
      if (rank != keeper) return emit({StepKind::send, wide, own, Buffer::none, round, 1, 0, other});
      // What the other sends is a partial unless it is a rank's own: its node then covers one rank only.
      const bool single = level == 0 || ((other >> level) << level) + 1 == shape.world;
      const bool last = level + 1 == tree.levels();
      const uint8_t flags = (single ? 0 : flag::wide) | (last ? flag::finish : 0);
      const Buffer target = last ? Buffer::output : Buffer::accumulator;
      emit({StepKind::recv_reduce, flags, own, target, round, 1, 0, other});
      own = target;
    });
    if (rank != tree.holder(level + 1, rank >> (level + 1))) return;
  }
}

void tree_broadcast(Rank rank, const Shape& shape, const Emit& emit) {
  const uint32_t place = (rank + shape.world - shape.root) % shape.world;  // distance from the root
  const auto levels = uint32_t(std::bit_width(shape.world - 1));
  const auto at = [&](uint32_t distance) { return (shape.root + distance) % shape.world; };
  const uint32_t lowest = place == 0 ? levels : uint32_t(std::countr_zero(place));
  const auto round = [&](uint32_t level) { return uint16_t(levels - 1 - level); };
  if (place != 0)
    emit({StepKind::recv, 0, Buffer::none, Buffer::output, round(lowest), 1, 0, at(place - (1u << lowest))});
  for (uint32_t level = lowest; level-- > 0;)
    if (place + (1u << level) < shape.world)
      emit({StepKind::send, 0, Buffer::output, Buffer::none, round(level), 1, 0, at(place + (1u << level))});
}

}  // namespace rondo::schedule
