#include "schedule/ring.hpp"

namespace rondo::schedule {
namespace {

// This rank's place in the ring, and the rounds both halves are made of.
struct Ring {
  Rank rank, world;
  const Emit& emit;

  Rank next() const { return (rank + 1) % world; }
  Rank previous() const { return (rank + world - 1) % world; }
  // The chunk that arrives in round s of a walk which ends (s = world-2) with chunk `last`.
  uint32_t arriving(uint32_t last, uint32_t s) const { return (last + 2 * world - 2 - s) % world; }

  void send(Buffer source, uint32_t round, uint32_t chunk, uint8_t flags = 0) const {
    emit({StepKind::send, flags, source, Buffer::none, uint16_t(round), 1, chunk, next()});
  }
  void recv(uint32_t round, uint32_t chunk) const {
    emit({StepKind::recv, 0, Buffer::none, Buffer::output, uint16_t(round), 1, chunk, previous()});
  }
  void recv_reduce(Buffer target, uint32_t round, uint32_t chunk, uint8_t flags) const {
    emit({StepKind::recv_reduce, flags, Buffer::input, target, uint16_t(round), 1, chunk, previous()});
  }

  // Ends with chunk `rank`, complete, in output. Raw contributions travel in round 0, partials after it.
  void reduce_scatter() const {
    send(Buffer::input, 0, previous());
    for (uint32_t s = 0; s + 1 < world; s++) {
      const uint32_t chunk = arriving(rank, s);
      const bool last = s + 2 == world;
      const uint8_t flags = (s > 0 ? flag::wide : 0) | (last ? flag::finish : 0);
      recv_reduce(last ? Buffer::output : Buffer::accumulator, s, chunk, flags);
      if (!last) send(Buffer::accumulator, s + 1, chunk, flag::wide);
    }
  }

  // Starts with chunk `rank` in `own`; ends with every chunk in output.
  void all_gather(Buffer own, uint32_t first_round) const {
    send(own, first_round, rank);
    for (uint32_t s = 0; s + 1 < world; s++) {
      const uint32_t chunk = arriving(next(), s);
      recv(first_round + s, chunk);
      if (s + 2 < world) send(Buffer::output, first_round + s + 1, chunk);
    }
  }

  void copy(uint8_t flags) const {
    emit({StepKind::copy, flags, Buffer::input, Buffer::output, 0, 1, rank, rank});
  }
};

}  // namespace

void ring_reduce_scatter(Rank rank, const Shape& shape, const Emit& emit) {
  const Ring ring{rank, shape.world, emit};
  if (shape.world == 1) return ring.copy(flag::finish);
  ring.reduce_scatter();
}

void ring_all_gather(Rank rank, const Shape& shape, const Emit& emit) {
  const Ring ring{rank, shape.world, emit};
  ring.copy(0);
  if (shape.world > 1) ring.all_gather(Buffer::input, 0);
}

void ring_all_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  const Ring ring{rank, shape.world, emit};
  if (shape.world == 1) return ring.copy(flag::finish);
  ring.reduce_scatter();
  ring.all_gather(Buffer::output, shape.world - 1);
}

void ring_broadcast(Rank rank, const Shape& shape, const Emit& emit) {
  const Ring ring{rank, shape.world, emit};
  const Rank place = (rank + shape.world - shape.root) % shape.world;  // distance from the root
  if (place > 0) ring.recv(place - 1, 0);
  if (place + 1 < shape.world) ring.send(Buffer::output, place, 0);
}

}  // namespace rondo::schedule
