// A collective algorithm is a pure function (rank, shape) -> steps. This file defines the step; ring.hpp and
// its neighbours generate steps; verify.hpp proves them; the engine runs them.
//
// Semantics, shared by the verifier and the engine:
//  - Steps are listed in the order in which each link carries them. Steps of one round are concurrent; a step
//    waits only for its data (an earlier step that writes what it reads) and for its buffers (earlier steps
//    that read or write what it overwrites).
//  - A send is complete when the receiver has released it.
//  - A chunk of the accumulator is as wide as what was written to it: partials wide, all else narrow.
//  - A copy of a chunk onto itself (a shard that is in place already) does nothing.
//  - A chunk is placed by Layout; lanes and segments are not in steps: the engine loops a schedule over
//    windows of segments.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "rondo/types.hpp"

namespace rondo::schedule {

enum class StepKind : uint8_t {
  send,         // source[chunk] -> peer
  recv,         // peer -> target[chunk]
  recv_reduce,  // target[chunk] = (what peer sent) op source[chunk]
  copy,         // target[chunk] = source[other]
  reduce,       // target[chunk] = source[other] op target[chunk]
};

enum class Buffer : uint8_t { none, input, output, accumulator };

namespace flag {
inline constexpr uint8_t wide = 1;    // the payload is a partial, in the accumulation type
inline constexpr uint8_t finish = 2;  // the result is complete: scale, canonical NaN, round once
// Part of a run of recv_reduces of one chunk, one from every other rank, that are one reduction: all ranks'
// contributions in the order of the canonical tree, in which node (k,i) covers the ranks from i*2^k up to
// (i+1)*2^k and is left op right, or left alone when right is empty.
inline constexpr uint8_t fan = 4;
// On a send: part of a run of sends of one chunk, one to every other rank, that are one publication where all
// ranks see one memory. On what receives: the payload is taken from the peer's publication.
inline constexpr uint8_t published = 8;
}  // namespace flag

struct Step {
  StepKind kind;
  uint8_t flags;
  Buffer source, target;
  uint16_t round, chunks;  // chunks: length of the range that starts at `chunk`
  uint32_t chunk;          // global chunk id
  uint32_t other;          // the peer; for copy and reduce the source chunk

  friend bool operator==(const Step&, const Step&) = default;
};
static_assert(sizeof(Step) == 16);

constexpr bool receives(const Step& step) noexcept {
  return step.kind == StepKind::recv || step.kind == StepKind::recv_reduce;
}
constexpr bool sends(const Step& step) noexcept { return step.kind == StepKind::send; }

inline constexpr Rank nobody = UINT32_MAX;

struct Shape {
  uint32_t world = 1;
  Rank root = 0;
  Rank to = nobody, from = nobody;       // send_recv: this rank's peers
  std::span<const uint32_t> nodes = {};  // of every rank; empty: all are on one
};

constexpr std::string_view name_of(StepKind kind) noexcept {
  switch (kind) {
    case StepKind::send:
      return "send";
    case StepKind::recv:
      return "recv";
    case StepKind::recv_reduce:
      return "recv_reduce";
    case StepKind::copy:
      return "copy";
    case StepKind::reduce:
      return "reduce";
  }
  return "?";
}
constexpr std::string_view name_of(Buffer buffer) noexcept {
  switch (buffer) {
    case Buffer::none:
      return "none";
    case Buffer::input:
      return "input";
    case Buffer::output:
      return "output";
    case Buffer::accumulator:
      return "accumulator";
  }
  return "?";
}

/// The chunks of a vector are one buffer's, cut into parts. In an all_to_all chunk i * world + j is what rank i
/// sends to rank j; in a send_recv chunk i is what rank i sends.
enum class Operation : uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
  reduce,
  gather,
  scatter,
  all_to_all,
  send_recv,
};
enum class Algorithm : uint8_t {
  ring,
  dissemination,
  direct,
  one_shot,
  tree,
  double_tree,
  halving_doubling,
  hierarchical,
};

constexpr bool reduces(Operation operation) noexcept {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter ||
         operation == Operation::reduce;
}
/// Whether contributions are reduced in one go, each straight from its rank, so that no partial travels.
constexpr bool reduces_at_once(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::direct || algorithm == Algorithm::one_shot;
}
constexpr bool is_rooted(Operation operation) noexcept {
  return operation == Operation::broadcast || operation == Operation::reduce ||
         operation == Operation::gather || operation == Operation::scatter;
}
/// Whether a buffer holds only this rank's part of the vector.
constexpr bool is_shard(Operation operation, Buffer buffer) noexcept {
  const bool in = operation == Operation::all_gather || operation == Operation::gather;
  const bool out = operation == Operation::reduce_scatter || operation == Operation::scatter;
  return (in && buffer == Buffer::input) || (out && buffer == Buffer::output);
}

constexpr std::string_view name_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::all_gather:
      return "all_gather";
    case Operation::broadcast:
      return "broadcast";
    case Operation::barrier:
      return "barrier";
    case Operation::reduce:
      return "reduce";
    case Operation::gather:
      return "gather";
    case Operation::scatter:
      return "scatter";
    case Operation::all_to_all:
      return "all_to_all";
    case Operation::send_recv:
      return "send_recv";
  }
  return "?";
}
constexpr std::string_view name_of(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::dissemination:
      return "dissemination";
    case Algorithm::direct:
      return "direct";
    case Algorithm::one_shot:
      return "one_shot";
    case Algorithm::tree:
      return "tree";
    case Algorithm::double_tree:
      return "double_tree";
    case Algorithm::halving_doubling:
      return "halving_doubling";
    case Algorithm::hierarchical:
      return "hierarchical";
  }
  return "?";
}

/// Receives the steps of one rank, one by one; nothing is materialised unless the sink does it.
using Emit = std::function<void(const Step&)>;

/// One algorithm for one operation. `steps` is pure: the same arguments give the same steps on every rank.
struct Schedule {
  Operation operation;
  Algorithm algorithm;
  uint32_t (*chunks)(const Shape&);  // how many chunks the vector is cut into
  void (*steps)(Rank, const Shape&, const Emit&);
  bool canonical = false;  // sums in the order of the canonical tree, whatever the world
};

}  // namespace rondo::schedule
