#include "schedule/double_tree.hpp"

#include <bit>

namespace rondo::schedule {
namespace {

using Place = uint32_t;  // from 1
constexpr Place none = 0;

// An in-order binary tree over the places 1 to size.
struct InOrder {
  uint32_t size;

  static uint32_t level(Place place) { return uint32_t(std::countr_zero(place)); }
  Place root() const { return std::bit_floor(size); }
  uint32_t levels() const { return uint32_t(std::bit_width(size)); }
  Place left(Place place) const { return place & 1 ? none : place - (1u << level(place)) / 2; }
  // The root of what is left to the right: nearer and lower where the tree ends.
  Place right(Place place) const {
    uint32_t step = 1u << level(place) >> 1;
    while (step > 0 && place + step > size) step >>= 1;
    return step == 0 ? none : place + step;
  }
  Place parent(Place place) const {
    const uint32_t bit = 1u << level(place), up = (place ^ bit) | 2 * bit;
    return up <= size ? up : place ^ bit;
  }
};

// One rank's part in one tree. Members are counted from `first` around the world.
struct Branch {
  uint32_t half;
  InOrder tree;
  Rank first;
  uint32_t world;
  const Emit& emit;

  Rank rank_at(Place place) const {
    const uint32_t n = tree.size;
    const uint32_t member = half == 0 ? place - 1 : n % 2 == 0 ? n - place : place % n;
    return (first + member) % world;
  }
  Place place_of(Rank rank) const {
    const uint32_t n = tree.size, member = (rank + world - first) % world;
    return half == 0 ? member + 1 : n % 2 == 0 ? n - member : (member + n - 1) % n + 1;
  }
  uint32_t up_round(Place child) const { return InOrder::level(child); }
  uint32_t down_round(Place child) const { return tree.levels() - 1 - InOrder::level(child); }

  void send(Buffer source, uint8_t flags, uint32_t round, Rank to) const {
    emit({StepKind::send, flags, source, Buffer::none, uint16_t(round), 1, half, to});
  }
  void recv(uint32_t round, Rank from) const {
    emit({StepKind::recv, 0, Buffer::none, Buffer::output, uint16_t(round), 1, half, from});
  }
  void add(Buffer source, bool last, Place child) const {
    const uint8_t wide = InOrder::level(child) > 0 ? flag::wide : 0;  // a leaf sends its own
    emit({StepKind::recv_reduce, uint8_t(wide | (last ? flag::finish : 0)), source,
          last ? Buffer::output : Buffer::accumulator, uint16_t(up_round(child)), 1, half, rank_at(child)});
  }

  // Adds what the children send, and sends it on to `above`, or finishes it if nobody is.
  void up(Place place, Rank above) const {
    const Place left = tree.left(place), right = tree.right(place);
    if (left != none) add(Buffer::input, above == nobody && right == none, left);
    if (right != none) add(Buffer::accumulator, above == nobody, right);
    if (above == nobody) return;
    if (left == none) return send(Buffer::input, 0, up_round(place), above);
    send(Buffer::accumulator, flag::wide, up_round(place), above);
  }
  void down(Place place, Rank above, uint32_t first_round) const {
    if (above != nobody) recv(first_round + down_round(place), above);
    for (Place child : {tree.right(place), tree.left(place)})
      if (child != none) send(Buffer::output, 0, first_round + down_round(child), rank_at(child));
  }
  Rank above(Place place, Rank top) const { return place == tree.root() ? top : rank_at(tree.parent(place)); }
};

void copy(const Emit& emit) {
  for (uint32_t half = 0; half < halves; half++)
    emit({StepKind::copy, flag::finish, Buffer::input, Buffer::output, 0, 1, half, half});
}

}  // namespace

void double_tree_all_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  if (shape.world == 1) return copy(emit);
  const InOrder tree{shape.world};
  const auto each_half = [&](const auto& visit) {
    for (uint32_t half = 0; half < halves; half++) {
      const Branch branch{half, tree, 0, shape.world, emit};
      const Place place = branch.place_of(rank);
      visit(branch, place, branch.above(place, nobody));
    }
  };
  each_half([](const Branch& branch, Place place, Rank above) { branch.up(place, above); });
  each_half(
      [&](const Branch& branch, Place place, Rank above) { branch.down(place, above, tree.levels() - 2); });
}

void double_tree_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  if (shape.world == 1) return copy(emit);
  for (uint32_t half = 0; half < halves; half++) {
    const Branch branch{half, {shape.world - 1}, shape.root + 1, shape.world, emit};
    if (rank == shape.root) {
      branch.add(Buffer::input, true, branch.tree.root());
      continue;
    }
    const Place place = branch.place_of(rank);
    branch.up(place, branch.above(place, shape.root));
  }
}

void double_tree_broadcast(Rank rank, const Shape& shape, const Emit& emit) {
  if (shape.world == 1) return;
  for (uint32_t half = 0; half < halves; half++) {
    const Branch branch{half, {shape.world - 1}, shape.root + 1, shape.world, emit};
    const Place top = branch.tree.root();
    if (rank == shape.root) {
      branch.send(Buffer::output, 0, branch.down_round(top), branch.rank_at(top));
      continue;
    }
    const Place place = branch.place_of(rank);
    branch.down(place, branch.above(place, shape.root), 0);
  }
}

}  // namespace rondo::schedule
