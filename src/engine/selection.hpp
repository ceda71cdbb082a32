// Which algorithm a call runs: a pure function of values that all ranks share, so that no rank chooses
// differently.
#pragma once
#include "engine/call.hpp"

namespace rondo::engine {

/// The same on every rank of a communicator.
struct Situation {
  uint32_t world;
  bool publishes;  // all ranks see one memory
};

/// Whether the operation has the algorithm, and it does what the call demands: sums in canonical order where
/// they shall be reproducible, and in one go where they are weighted, so that every contribution meets its
/// rank's weight.
bool can_run(const Call& call, schedule::Algorithm algorithm) noexcept;
schedule::Algorithm select(const Call& call, const Situation& situation) noexcept;

}  // namespace rondo::engine
