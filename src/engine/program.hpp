// One rank's schedule lowered to what the executor runs: a queue of actions per link, and for every action
// the earlier one whose result it reads. Immutable; made once per (operation, algorithm, root) and kept.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/fuse.hpp"

namespace rondo::engine {

inline constexpr uint32_t none = UINT32_MAX;

struct Op {
  schedule::ActionKind kind;
  uint8_t in_flags, out_flags;
  schedule::Buffer source, target;  // target none: the partial goes straight into the outgoing link
  uint32_t chunk, source_chunk;
  uint32_t in_link = none, out_link = none;
  uint32_t producer = none;         // the op that writes what this one reads from `source`
  uint32_t target_producer = none;  // the op that writes what a reduce adds to
  uint32_t fan = none;              // a reduce_fan: where its links begin in Program::fans
};

struct LinkQueue {
  Rank peer;  // of a publication that this rank sends: itself
  bool sends, published;
  std::vector<uint32_t> ops;
  bool feeds = false;  // what comes in there is sent on, as it is or reduced
};

struct Program {
  std::vector<Op> ops;
  std::vector<LinkQueue> links;
  std::vector<uint32_t> local;  // copies and reductions, in order
  std::vector<uint32_t> fans;   // a link for every rank of the world, `none` in this rank's own place
  uint32_t chunks = 0;
  bool accumulates = false;  // needs accumulator memory
};

Program lower(const schedule::Schedule& schedule, Rank rank, const schedule::Shape& shape,
              schedule::Publications publications);

}  // namespace rondo::engine
