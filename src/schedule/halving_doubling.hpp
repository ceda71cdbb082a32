// Recursive halving and doubling over binary blocks, for any world (Rabenseifner, "Optimization of collective
// reduction operations", ICCS 2004; Thakur, Rabenseifner and Gropp, "Optimization of collective communication
// operations in MPICH", IJHPCA 19(1), 2005): the bytes of a ring in log2 N rounds.
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

// The world is cut into blocks whose sizes are the powers of two of its binary form, the largest first. Inside
// its block a rank halves with the neighbour at distance 1, then 2, then 4: each time it gives away half of the
// chunks that it still holds and adds to the other half what the neighbour gives. So block i has the sum of its
// ranks of every chunk c at one rank, owner i of c, the one with the low bits of c:
//
//   7 ranks     block 0: 0 1 2 3           block 1: 4 5      block 2: 6
//   chunk 2     0 -> 2,  1 -> 3;  3 -> 2   5 -> 4            6 has its own only
//               0: (0+2's half) ...        4: 4+5
//
// Then the sums of the blocks come to the home of the chunk, the rank with its number: from the smallest block
// up to the home's in a chain, and from the larger ones directly.
//
//   chunk 2     6 --6--> 4 --(4+5)+6--> 2        home in block 0
//   chunk 4     6 --6--> 4 <--(0+1)+(2+3)-- 0    home in block 1
//
// That is the canonical tree. The all-gather is the same the other way round: the home sends its chunk to the
// owners in the other blocks, and each block doubles from its largest distance down to 1.
void halving_reduce_scatter(Rank rank, const Shape& shape, const Emit& emit);
void doubling_all_gather(Rank rank, const Shape& shape, const Emit& emit);
void halving_doubling_all_reduce(Rank rank, const Shape& shape, const Emit& emit);

}  // namespace rondo::schedule
