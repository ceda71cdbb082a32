// Ring schedules: every rank sends to rank+1 and receives from rank-1. Bandwidth-optimal: each rank sends
// (N-1)/N of the vector in a reduce-scatter and as much in an all-gather (Patarasuk and Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009).
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

// Reduce-scatter on 4 ranks. Chunk c starts at rank c+1 and walks the ring; each rank adds its own
// contribution and passes the partial on; it ends, complete, at rank c:
//
//   chunk 0:  rank 1 --> rank 2 --> rank 3 --> rank 0     round 0, 1, 2
//   chunk 1:  rank 2 --> rank 3 --> rank 0 --> rank 1
//   chunk 2:  rank 3 --> rank 0 --> rank 1 --> rank 2
//   chunk 3:  rank 0 --> rank 1 --> rank 2 --> rank 3
//
// The all-gather lets every finished chunk walk on from its owner for another N-1 rounds.
void ring_reduce_scatter(Rank rank, const Shape& shape, const Emit& emit);
void ring_all_gather(Rank rank, const Shape& shape, const Emit& emit);
void ring_all_reduce(Rank rank, const Shape& shape, const Emit& emit);
// A chain from the root around the ring, pipelined by the engine's segments.
void ring_broadcast(Rank rank, const Shape& shape, const Emit& emit);

}  // namespace rondo::schedule
