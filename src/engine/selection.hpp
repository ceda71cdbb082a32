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

schedule::Algorithm select(const Call& call, const Situation& situation) noexcept;

}  // namespace rondo::engine
