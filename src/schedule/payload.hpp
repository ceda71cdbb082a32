// How much data a schedule moves.
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

/// Payload elements that `rank` sends, for a vector of `count` elements. Headers are not payload.
uint64_t payload_elements(const Schedule& schedule, uint64_t count, const Shape& shape, Rank rank);
/// The same for all ranks together: exactly 2(N-1)m for a ring all-reduce of m elements, (N-1)m for a ring
/// reduce-scatter, all-gather or broadcast, for any N and m.
uint64_t payload_elements(const Schedule& schedule, uint64_t count, const Shape& shape);

}  // namespace rondo::schedule
