// Which algorithm a call runs: a pure function of values that all ranks share, so that no rank chooses
// differently.
#pragma once
#include "schedule/step.hpp"

namespace rondo::engine {

inline schedule::Algorithm select(schedule::Operation operation) noexcept {
  return operation == schedule::Operation::barrier ? schedule::Algorithm::dissemination
                                                   : schedule::Algorithm::ring;
}

}  // namespace rondo::engine
