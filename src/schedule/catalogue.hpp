// Every schedule that exists: the verifier proves each entry, the engine and `rondo explain` pick from here.
#pragma once
#include <span>

#include "schedule/step.hpp"

namespace rondo::schedule {

std::span<const Schedule> catalogue() noexcept;
/// nullptr when the operation has no such algorithm.
const Schedule* find(Operation operation, Algorithm algorithm) noexcept;

}  // namespace rondo::schedule
