#include "schedule/exchange.hpp"

namespace rondo::schedule {
namespace {

struct Moves {
  const Emit& emit;

  void send(uint32_t round, uint32_t chunk, Rank to) const {
    emit({StepKind::send, 0, Buffer::input, Buffer::none, uint16_t(round), 1, chunk, to});
  }
  void recv(uint32_t round, uint32_t chunk, Rank from) const {
    emit({StepKind::recv, 0, Buffer::none, Buffer::output, uint16_t(round), 1, chunk, from});
  }
  void keep(uint32_t chunk) const {
    emit({StepKind::copy, 0, Buffer::input, Buffer::output, 0, 1, chunk, chunk});
  }
};

}  // namespace

void direct_gather(Rank rank, const Shape& shape, const Emit& emit) {
  const Moves moves{emit};
  if (rank != shape.root) return moves.send(0, rank, shape.root);
  moves.keep(rank);
  for (Rank peer = 0; peer < shape.world; peer++)
    if (peer != rank) moves.recv(0, peer, peer);
}

void direct_scatter(Rank rank, const Shape& shape, const Emit& emit) {
  const Moves moves{emit};
  if (rank != shape.root) return moves.recv(0, rank, shape.root);
  for (Rank peer = 0; peer < shape.world; peer++)
    if (peer != rank) moves.send(0, peer, peer);
  moves.keep(rank);
}

void direct_all_to_all(Rank rank, const Shape& shape, const Emit& emit) {
  const Moves moves{emit};
  const uint32_t world = shape.world;
  moves.keep(rank * world + rank);
  for (uint32_t d = 1; d < world; d++) {
    const Rank to = (rank + d) % world, from = (rank + world - d) % world;
    moves.send(d - 1, rank * world + to, to);
    moves.recv(d - 1, from * world + rank, from);
  }
}

void direct_send_recv(Rank rank, const Shape& shape, const Emit& emit) {
  const Moves moves{emit};
  if (shape.to == rank) return moves.keep(rank);
  if (shape.to != nobody) moves.send(0, rank, shape.to);
  if (shape.from != nobody) moves.recv(0, shape.from, shape.from);
}

}  // namespace rondo::schedule
