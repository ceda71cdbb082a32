// Dissemination barrier (Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988).
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

// In round k every rank sends its token to rank + 2^k and merges the token of rank - 2^k into its own. After
// ceil(log2 N) rounds a token holds every rank's arrival, some of them more than once, which is harmless:
// tokens have no elements, only their data dependencies count. Token k is chunk k of the accumulator.
void dissemination_barrier(Rank rank, const Shape& shape, const Emit& emit);
uint32_t dissemination_chunks(const Shape& shape);

}  // namespace rondo::schedule
