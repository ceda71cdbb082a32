#include "schedule/halving_doubling.hpp"

#include <bit>
#include <vector>

namespace rondo::schedule {
namespace {

struct Block {
  Rank first;
  uint32_t size;  // a power of two

  Rank owner(uint32_t chunk) const { return first + (chunk & (size - 1)); }
  bool has(Rank rank) const { return rank >= first && rank < first + size; }
  uint32_t levels() const { return uint32_t(std::countr_zero(size)); }
};

// Both ends of a link list their steps in the same order: by level inside a block, by chunk between blocks.
class Halving {
 public:
  Halving(Rank rank, uint32_t world, const Emit& emit) : rank_(rank), world_(world), emit_(emit) {
    for (Rank first = 0; first < world; first += blocks_.back().size)
      blocks_.push_back({first, std::bit_floor(world - first)});
    mine_ = block_of(rank);
  }

  // Ends with chunk `rank`, complete, in output.
  void reduce_scatter() const {
    for (uint32_t level = 0; level < block().levels(); level++) halve(level);
    if (blocks_.size() == 1) return;
    for (uint32_t chunk = place(); chunk < world_; chunk += block().size) merge(chunk);
  }
  uint32_t reduce_rounds() const { return blocks_[0].levels() + uint32_t(blocks_.size()) - 1; }

  // Starts with chunk `rank` in `own`; ends with every chunk in output.
  void all_gather(Buffer own, uint32_t round) const {
    if (blocks_.size() > 1) {
      for (uint32_t chunk = place(); chunk < world_; chunk += block().size) spread(own, round, chunk);
      round++;
    }
    for (uint32_t level = block().levels(); level-- > 0;)
      double_up(own, round + blocks_[0].levels() - 1 - level, level);
  }

  void copy(uint8_t flags) const {
    emit_({StepKind::copy, flags, Buffer::input, Buffer::output, 0, 1, rank_, rank_});
  }

 private:
  const Block& block() const { return blocks_[mine_]; }
  uint32_t place() const { return rank_ - block().first; }
  uint32_t block_of(Rank rank) const {
    uint32_t i = 0;
    while (!blocks_[i].has(rank)) i++;
    return i;
  }

  void send(Buffer source, uint8_t flags, uint32_t round, uint32_t chunk, Rank to) const {
    emit_({StepKind::send, flags, source, Buffer::none, uint16_t(round), 1, chunk, to});
  }
  void recv(uint32_t round, uint32_t chunk, Rank from) const {
    emit_({StepKind::recv, 0, Buffer::none, Buffer::output, uint16_t(round), 1, chunk, from});
  }
  // Adds what `from` sends to what this rank has in `own`; the last of a chunk completes it.
  void add(Buffer& own, uint8_t flags, bool last, uint32_t round, uint32_t chunk, Rank from) const {
    const Buffer target = last ? Buffer::output : Buffer::accumulator;
    if (last) flags |= flag::finish;
    emit_({StepKind::recv_reduce, flags, own, target, uint16_t(round), 1, chunk, from});
    own = target;
  }

  // At `level` this rank and its partner have the chunks that agree with both below it: these are one's and the
  // other's by their bit there.
  Rank partner(uint32_t level) const { return block().first + (place() ^ (1u << level)); }
  uint32_t mine(uint32_t level) const { return place() & ((2u << level) - 1); }
  uint32_t theirs(uint32_t level) const { return mine(level) ^ (1u << level); }
  // Sends and receives in turns, so that neither fills its link before the other takes anything.
  template <class Send, class Receive>
  void exchange(uint32_t level, uint32_t sent, uint32_t received, const Send& send_one,
                const Receive& receive_one) const {
    for (uint32_t first = 0; first < world_; first += 2u << level) {
      if (first + sent < world_) send_one(first + sent);
      if (first + received < world_) receive_one(first + received);
    }
  }

  void halve(uint32_t level) const {
    const bool done = blocks_.size() == 1 && level + 1 == block().levels();
    const Buffer had = level == 0 ? Buffer::input : Buffer::accumulator;
    const uint8_t flags = level == 0 ? 0 : flag::wide;
    exchange(
        level, theirs(level), mine(level),
        [&](uint32_t chunk) { send(had, flags, level, chunk, partner(level)); },
        [&](uint32_t chunk) {
          Buffer own = had;
          add(own, flags, done, level, chunk, partner(level));
        });
  }
  void double_up(Buffer own, uint32_t round, uint32_t level) const {
    exchange(
        level, mine(level), theirs(level),
        [&](uint32_t chunk) { send(chunk == rank_ ? own : Buffer::output, 0, round, chunk, partner(level)); },
        [&](uint32_t chunk) { recv(round, chunk, partner(level)); });
  }

  // The sum of a larger block, `low`, meets those of the smaller ones after it.
  uint32_t merge_round(uint32_t low) const {
    return blocks_[0].levels() + uint32_t(blocks_.size()) - 2 - low;
  }
  void merge(uint32_t chunk) const {
    const uint32_t home = block_of(chunk);
    Buffer own = block().size == 1 ? Buffer::input : Buffer::accumulator;
    if (mine_ >= home && mine_ + 1 < blocks_.size()) {
      const Block& next = blocks_[mine_ + 1];
      const uint8_t flags = next.size == 1 ? 0 : flag::wide;  // a block of one is the last: nothing was added
      add(own, flags, home == 0 && mine_ == 0, merge_round(mine_), chunk, next.owner(chunk));
    }
    if (mine_ == home) {
      for (uint32_t i = home; i-- > 0;)
        add(own, flag::wide, i == 0, merge_round(i), chunk, blocks_[i].owner(chunk));
      return;
    }
    const uint8_t flags = own == Buffer::accumulator ? flag::wide : 0;
    if (mine_ > home)
      send(own, flags, merge_round(mine_ - 1), chunk, blocks_[mine_ - 1].owner(chunk));
    else
      send(own, flags, merge_round(mine_), chunk, chunk);
  }

  void spread(Buffer own, uint32_t round, uint32_t chunk) const {
    if (chunk != rank_) return recv(round, chunk, chunk);
    for (uint32_t i = 0; i < blocks_.size(); i++)
      if (i != mine_) send(own, 0, round, chunk, blocks_[i].owner(chunk));
  }

  Rank rank_;
  uint32_t world_;
  const Emit& emit_;
  std::vector<Block> blocks_;
  uint32_t mine_ = 0;
};

}  // namespace

void halving_reduce_scatter(Rank rank, const Shape& shape, const Emit& emit) {
  const Halving halving(rank, shape.world, emit);
  if (shape.world == 1) return halving.copy(flag::finish);
  halving.reduce_scatter();
}

void doubling_all_gather(Rank rank, const Shape& shape, const Emit& emit) {
  const Halving halving(rank, shape.world, emit);
  halving.copy(0);
  halving.all_gather(Buffer::input, 0);
}

void halving_doubling_all_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  const Halving halving(rank, shape.world, emit);
  if (shape.world == 1) return halving.copy(flag::finish);
  halving.reduce_scatter();
  halving.all_gather(Buffer::output, halving.reduce_rounds());
}

}  // namespace rondo::schedule
