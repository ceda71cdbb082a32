#include "schedule/hierarchical.hpp"

#include <utility>

#include "schedule/grouping.hpp"
#include "schedule/ring.hpp"

namespace rondo::schedule {
namespace {

class Hierarchy {
 public:
  Hierarchy(Rank rank, const Shape& shape, const Emit& emit)
      : nodes_(nodes_of(shape)),
        leaders_(smallest(nodes_)),
        seat_(seats_of(nodes_, shape.world)[rank]),
        emit_(emit) {}

  void all_reduce() const {
    if (nodes_.size() == 1 && mine().size() == 1) return copy();
    gather_contributions();
    if (leads() && nodes_.size() > 1) ring();
    hand_out();
  }

 private:
  const Members& mine() const { return nodes_[seat_.node]; }
  uint32_t count() const { return uint32_t(nodes_.size()); }
  bool leads() const { return seat_.place < leaders_; }
  uint32_t chunk(uint32_t slice, uint32_t index) const { return slice * count() + index; }
  // Rounds of one stage inside the nodes.
  uint32_t inner_rounds() const { return largest(nodes_) - 1; }

  // The other members of this node, each of them at another distance from every rank: visit(round, to, from),
  // places.
  template <class Visit>
  void each_distance(const Visit& visit) const {
    const auto size = uint32_t(mine().size());
    for (uint32_t d = 1; d < size; d++)
      visit(d - 1, (seat_.place + d) % size, (seat_.place + size - d) % size);
  }

  void copy() const { emit_({StepKind::copy, flag::finish, Buffer::input, Buffer::output, 0, 1, 0, 0}); }

  // Ends with the node's sum of this rank's slice in the accumulator, or with the result if there is no other
  // node.
  void gather_contributions() const {
    each_distance([&](uint32_t round, uint32_t to, uint32_t from) {
      const bool last = count() == 1 && round + 2 == mine().size();
      const Buffer own = round == 0 ? Buffer::input : Buffer::accumulator;
      const Buffer target = last ? Buffer::output : Buffer::accumulator;
      for (uint32_t i = 0; i < count(); i++) {
        if (to < leaders_)
          emit_(
              {StepKind::send, 0, Buffer::input, Buffer::none, uint16_t(round), 1, chunk(to, i), mine()[to]});
        if (leads())
          emit_({StepKind::recv_reduce, last ? flag::finish : uint8_t(0), own, target, uint16_t(round), 1,
                 chunk(seat_.place, i), mine()[from]});
      }
    });
  }

  // A ring in which every node is a rank and what its members add up to is its contribution.
  void ring() const {
    const auto is_sum = [&](uint32_t node) { return nodes_[node].size() > 1; };
    ring_all_reduce(seat_.node, {.world = count()}, [&](Step step) {
      const uint32_t sender = receives(step) ? step.other : seat_.node;
      if (step.round == 0 && is_sum(sender)) step.flags |= flag::wide;
      if (step.source == Buffer::input && is_sum(seat_.node)) step.source = Buffer::accumulator;
      step.round = uint16_t(step.round + inner_rounds());
      step.chunk = chunk(seat_.place, step.chunk);
      step.other = nodes_[step.other][seat_.place];
      emit_(step);
    });
  }

  // In the order in which the ring completes the chunks at this node.
  void hand_out() const {
    const uint32_t first_round = inner_rounds() + 2 * (count() - 1);
    each_distance([&](uint32_t d, uint32_t to, uint32_t from) {
      const auto round = uint16_t(first_round + d);
      for (uint32_t i = 0; i < count(); i++) {
        const uint32_t index = (seat_.node + count() - i) % count();
        if (leads())
          emit_({StepKind::send, 0, Buffer::output, Buffer::none, round, 1, chunk(seat_.place, index),
                 mine()[to]});
        if (from < leaders_)
          emit_(
              {StepKind::recv, 0, Buffer::none, Buffer::output, round, 1, chunk(from, index), mine()[from]});
      }
    });
  }

  std::vector<Members> nodes_;
  uint32_t leaders_;  // of every node
  Seat seat_;
  const Emit& emit_;
};

}  // namespace

uint32_t hierarchical_chunks(const Shape& shape) {
  const auto nodes = nodes_of(shape);
  return smallest(nodes) * uint32_t(nodes.size());
}

void hierarchical_all_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  Hierarchy(rank, shape, emit).all_reduce();
}

namespace {

// The nodes with the leader of each first: the root, and elsewhere the first rank.
std::vector<Members> led_by(const Shape& shape) {
  auto nodes = nodes_of(shape);
  const Seat root = seats_of(nodes, shape.world)[shape.root];
  std::swap(nodes[root.node][0], nodes[root.node][root.place]);
  return nodes;
}

}  // namespace

void hierarchical_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  const auto nodes = led_by(shape);
  const auto seats = seats_of(nodes, shape.world);
  const Seat seat = seats[rank];
  const auto count = uint32_t(nodes.size()), root_node = seats[shape.root].node;
  const uint32_t distance = (seat.node + count - root_node) % count;  // along the chain, from the root on
  const uint32_t inner_rounds = largest(nodes) - 1;
  const Members& mine = nodes[seat.node];
  const auto neighbour = [&](uint32_t step) -> const Members& { return nodes[(seat.node + step) % count]; };
  Buffer own = Buffer::input;
  const auto add = [&](uint32_t round, uint8_t wide, bool last, Rank from) {
    const Buffer target = last ? Buffer::output : Buffer::accumulator;
    emit({StepKind::recv_reduce, uint8_t(wide | (last ? flag::finish : 0)), own, target, uint16_t(round), 1,
          0, from});
    own = target;
  };
  if (shape.world == 1)
    return emit({StepKind::copy, flag::finish, Buffer::input, Buffer::output, 0, 1, 0, 0});
  if (seat.place > 0)
    return emit({StepKind::send, 0, Buffer::input, Buffer::none, uint16_t(seat.place - 1), 1, 0, mine[0]});
  for (uint32_t place = 1; place < mine.size(); place++)
    add(place - 1, 0, count == 1 && place + 1 == mine.size(), mine[place]);
  // The sums come along the chain, from its end to the root.
  if (distance + 1 < count) {
    const bool single = distance + 2 == count && neighbour(1).size() == 1;  // a rank's own, not a sum
    add(inner_rounds + count - 2 - distance, single ? 0 : flag::wide, distance == 0, neighbour(1)[0]);
  }
  if (distance == 0) return;
  emit({StepKind::send, own == Buffer::accumulator ? flag::wide : uint8_t(0), own, Buffer::none,
        uint16_t(inner_rounds + count - 1 - distance), 1, 0, neighbour(count - 1)[0]});
}

void hierarchical_broadcast(Rank rank, const Shape& shape, const Emit& emit) {
  const auto nodes = led_by(shape);
  const auto seats = seats_of(nodes, shape.world);
  const Seat root = seats[shape.root], seat = seats[rank];
  const auto count = uint32_t(nodes.size());
  const uint32_t distance = (seat.node + count - root.node) % count;  // along the chain
  const auto send = [&](uint32_t round, Rank to) {
    emit({StepKind::send, 0, Buffer::output, Buffer::none, uint16_t(round), 1, 0, to});
  };
  const auto recv = [&](uint32_t round, Rank from) {
    emit({StepKind::recv, 0, Buffer::none, Buffer::output, uint16_t(round), 1, 0, from});
  };
  const Members& mine = nodes[seat.node];
  if (seat.place > 0) return recv(count - 1, mine[0]);
  if (distance > 0) recv(distance - 1, nodes[(seat.node + count - 1) % count][0]);
  if (distance + 1 < count) send(distance, nodes[(seat.node + 1) % count][0]);
  for (uint32_t place = 1; place < mine.size(); place++) send(count - 1, mine[place]);
}

}  // namespace rondo::schedule
