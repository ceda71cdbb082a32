#include "schedule/direct.hpp"

namespace rondo::schedule {
namespace {

struct Direct {
  Rank rank;
  const Shape& shape;
  const Emit& emit;

  template <class Visit>
  void each_other(const Visit& visit) const {
    for (Rank peer = 0; peer < shape.world; peer++)
      if (peer != rank) visit(peer);
  }
  void step(StepKind kind, uint8_t flags, Buffer source, Buffer target, uint32_t round, uint32_t chunk,
            uint32_t other) const {
    emit({kind, flags, source, target, uint16_t(round), 1, chunk, other});
  }

  void publish(Buffer source, uint32_t round, uint32_t chunk) const {
    each_other(
        [&](Rank peer) { step(StepKind::send, flag::published, source, Buffer::none, round, chunk, peer); });
  }
  void take(uint32_t round, uint32_t chunk, Rank from) const {
    step(StepKind::recv, flag::published, Buffer::none, Buffer::output, round, chunk, from);
  }
  void reduce_fan(uint8_t flags, Buffer source, uint32_t chunk, Buffer target = Buffer::output) const {
    each_other([&](Rank peer) {
      step(StepKind::recv_reduce, flags | flag::fan | flag::finish, source, target, 0, chunk, peer);
    });
  }
  void copy(uint8_t flags, Buffer source, Buffer target, uint32_t chunk) const {
    step(StepKind::copy, flags, source, target, 0, chunk, chunk);
  }

  void reduce_scatter(Buffer target = Buffer::output) const {
    each_other([&](Rank peer) { step(StepKind::send, 0, Buffer::input, Buffer::none, 0, peer, peer); });
    reduce_fan(0, Buffer::input, rank, target);
  }
  // Starts with chunk `rank` in `own`; ends with every chunk in output.
  void all_gather(Buffer own, uint32_t round) const {
    publish(own, round, rank);
    each_other([&](Rank peer) { take(round, peer, peer); });
  }
};

}  // namespace

void direct_reduce_scatter(Rank rank, const Shape& shape, const Emit& emit) {
  const Direct direct{rank, shape, emit};
  if (shape.world == 1) return direct.copy(flag::finish, Buffer::input, Buffer::output, 0);
  direct.reduce_scatter();
}

void direct_all_gather(Rank rank, const Shape& shape, const Emit& emit) {
  const Direct direct{rank, shape, emit};
  direct.copy(0, Buffer::input, Buffer::output, rank);
  direct.all_gather(Buffer::input, 0);
}

void direct_all_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  const Direct direct{rank, shape, emit};
  if (shape.world == 1) return direct.copy(flag::finish, Buffer::input, Buffer::output, 0);
  direct.reduce_scatter();
  direct.all_gather(Buffer::output, 1);
}

void direct_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  const Direct direct{rank, shape, emit};
  if (shape.world == 1) return direct.copy(flag::finish, Buffer::input, Buffer::output, 0);
  const bool root = rank == shape.root;
  direct.reduce_scatter(root ? Buffer::output : Buffer::accumulator);
  if (!root) return direct.step(StepKind::send, 0, Buffer::accumulator, Buffer::none, 1, rank, shape.root);
  direct.each_other(
      [&](Rank peer) { direct.step(StepKind::recv, 0, Buffer::none, Buffer::output, 1, peer, peer); });
}

void direct_broadcast(Rank rank, const Shape& shape, const Emit& emit) {
  const Direct direct{rank, shape, emit};
  if (rank == shape.root)
    direct.publish(Buffer::output, 0, 0);
  else
    direct.take(0, 0, shape.root);
}

void direct_barrier(Rank rank, const Shape& shape, const Emit& emit) {
  const Direct direct{rank, shape, emit};
  if (shape.world == 1) return direct.copy(0, Buffer::input, Buffer::output, 0);
  direct.publish(Buffer::input, 0, 0);
  direct.each_other([&](Rank peer) {
    direct.step(StepKind::recv_reduce, flag::published | flag::fan, Buffer::input, Buffer::output, 0, 0,
                peer);
  });
}

void one_shot_all_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  const Direct direct{rank, shape, emit};
  if (shape.world == 1) return direct.copy(flag::finish, Buffer::input, Buffer::output, 0);
  direct.copy(0, Buffer::input, Buffer::accumulator, 0);
  direct.publish(Buffer::accumulator, 0, 0);
  direct.reduce_fan(flag::published, Buffer::accumulator, 0);
}

void one_shot_reduce(Rank rank, const Shape& shape, const Emit& emit) {
  const Direct direct{rank, shape, emit};
  if (shape.world == 1) return direct.copy(flag::finish, Buffer::input, Buffer::output, 0);
  if (rank != shape.root)
    return direct.step(StepKind::send, 0, Buffer::input, Buffer::none, 0, 0, shape.root);
  direct.reduce_fan(0, Buffer::input, 0);
}

}  // namespace rondo::schedule
