// Reduce-scatter and all-gather over nodes: a chunk per rank, each with a deputy of its rank on every node.
#include "schedule/grouping.hpp"
#include "schedule/hierarchical.hpp"

namespace rondo::schedule {
namespace {

using Chunks = std::vector<uint32_t>;  // in order

class Shards {
 public:
  Shards(Rank rank, const Shape& shape, const Emit& emit)
      : rank_(rank),
        nodes_(nodes_of(shape)),
        seats_(seats_of(nodes_, shape.world)),
        node_(seats_[rank].node),
        place_(seats_[rank].place),
        inner_rounds_(largest(nodes_) - 1),
        emit_(emit),
        by_place_(size()),
        by_node_(count()) {
    for (uint32_t chunk = 0; chunk < world(); chunk++) {
      by_place_[deputy_place(chunk)].push_back(chunk);
      if (deputy_place(chunk) == place_) by_node_[seats_[chunk].node].push_back(chunk);
    }
  }

  void reduce_scatter() const {
    if (world() == 1) return copy(flag::finish);
    gather_contributions();
    for (uint32_t t = 0; t + 1 < count(); t++) pass_on(t);
  }
  void all_gather() const {
    copy(0);
    for (uint32_t t = 0; t + 1 < count(); t++) carry(t);
    hand_out();
  }

 private:
  const Members& mine() const { return nodes_[node_]; }
  uint32_t size() const { return uint32_t(mine().size()); }
  uint32_t world() const { return uint32_t(seats_.size()); }
  uint32_t count() const { return uint32_t(nodes_.size()); }
  uint32_t next() const { return (node_ + 1) % count(); }
  uint32_t previous() const { return (node_ + count() - 1) % count(); }
  // On its own node a rank is its own deputy.
  uint32_t deputy_place(uint32_t chunk) const { return seats_[chunk].place % size(); }
  Rank deputy(uint32_t node, uint32_t chunk) const {
    return nodes_[node][seats_[chunk].place % nodes_[node].size()];
  }
  // The chunks of the node so far before this one for which this rank is a deputy.
  const Chunks& from_before(uint32_t distance) const {
    return by_node_[(node_ + 2 * count() - distance) % count()];
  }

  // Every rank deals with what it sends and receives in a round in the same order, by chunk or by the place of the
  // chunk's rank on its node, so that no two wait for each other.
  template <class Key, class Send, class Receive>
  static void in_order(const Key& key, const Chunks& sent, const Send& send_one, const Chunks& received,
                       const Receive& receive_one) {
    size_t next = 0;
    for (const uint32_t chunk : sent) {
      while (next < received.size() && key(received[next]) < key(chunk)) receive_one(received[next++]);
      send_one(chunk);
    }
    while (next < received.size()) receive_one(received[next++]);
  }
  auto by_chunk() const {
    return [](uint32_t chunk) { return chunk; };
  }
  auto by_place() const {
    return [this](uint32_t chunk) { return seats_[chunk].place; };
  }

  void send(Buffer source, uint8_t flags, uint32_t round, uint32_t chunk, Rank to) const {
    emit_({StepKind::send, flags, source, Buffer::none, uint16_t(round), 1, chunk, to});
  }
  void recv(uint32_t round, uint32_t chunk, Rank from) const {
    emit_({StepKind::recv, 0, Buffer::none, Buffer::output, uint16_t(round), 1, chunk, from});
  }
  void add(Buffer own, uint8_t flags, bool last, uint32_t round, uint32_t chunk, Rank from) const {
    emit_({StepKind::recv_reduce, uint8_t(flags | (last ? flag::finish : 0)), own,
           last ? Buffer::output : Buffer::accumulator, uint16_t(round), 1, chunk, from});
  }
  void copy(uint8_t flags) const {
    emit_({StepKind::copy, flags, Buffer::input, Buffer::output, 0, 1, rank_, rank_});
  }

  // Ends with the node's sum of every chunk at its deputy.
  void gather_contributions() const {
    for (uint32_t d = 1; d < size(); d++) {
      const uint32_t to = (place_ + d) % size(), from = (place_ + size() - d) % size();
      const bool last = count() == 1 && d + 1 == size();
      in_order(
          by_chunk(), by_place_[to],
          [&](uint32_t chunk) { send(Buffer::input, 0, d - 1, chunk, mine()[to]); }, by_place_[place_],
          [&](uint32_t chunk) {
            add(d == 1 ? Buffer::input : Buffer::accumulator, 0, last, d - 1, chunk, mine()[from]);
          });
    }
  }
  // A node's contribution to what goes round.
  Buffer own() const { return size() > 1 ? Buffer::accumulator : Buffer::input; }

  // The sum of a chunk sets out from the node after its own and ends there: in round t it goes from the node at
  // distance t + 1 to the next.
  void pass_on(uint32_t t) const {
    const uint32_t round = inner_rounds_ + t;
    const bool mine_is_sum = t > 0 || size() > 1, theirs_is_sum = t > 0 || nodes_[previous()].size() > 1;
    in_order(
        by_place(), from_before(t + 1),
        [&](uint32_t chunk) {
          send(mine_is_sum ? Buffer::accumulator : Buffer::input, mine_is_sum ? flag::wide : 0, round, chunk,
               deputy(next(), chunk));
        },
        from_before(t + 2),
        [&](uint32_t chunk) {
          add(own(), theirs_is_sum ? flag::wide : 0, t + 2 == count(), round, chunk,
              deputy(previous(), chunk));
        });
  }

  Buffer source(uint32_t chunk) const { return chunk == rank_ ? Buffer::input : Buffer::output; }
  // A chunk goes round from its own node on: in round t from the one at distance t to the next.
  void carry(uint32_t t) const {
    in_order(
        by_place(), from_before(t),
        [&](uint32_t chunk) { send(source(chunk), 0, t, chunk, deputy(next(), chunk)); }, from_before(t + 1),
        [&](uint32_t chunk) { recv(t, chunk, deputy(previous(), chunk)); });
  }
  void hand_out() const {
    for (uint32_t d = 1; d < size(); d++) {
      const uint32_t round = count() - 1 + d - 1;
      const uint32_t to = (place_ + d) % size(), from = (place_ + size() - d) % size();
      in_order(
          by_chunk(), by_place_[place_],
          [&](uint32_t chunk) { send(source(chunk), 0, round, chunk, mine()[to]); }, by_place_[from],
          [&](uint32_t chunk) { recv(round, chunk, mine()[from]); });
    }
  }

  Rank rank_;
  std::vector<Members> nodes_;
  std::vector<Seat> seats_;
  uint32_t node_, place_, inner_rounds_;
  const Emit& emit_;
  std::vector<Chunks> by_place_;  // all chunks, by the place of their deputies on this node
  std::vector<Chunks> by_node_;   // those of which this rank is a deputy, by their own nodes
};

}  // namespace

void hierarchical_reduce_scatter(Rank rank, const Shape& shape, const Emit& emit) {
  Shards(rank, shape, emit).reduce_scatter();
}

void hierarchical_all_gather(Rank rank, const Shape& shape, const Emit& emit) {
  Shards(rank, shape, emit).all_gather();
}

}  // namespace rondo::schedule
