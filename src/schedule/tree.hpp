// Binomial trees: log2 N rounds, the whole vector in each. For small vectors.
//
//   reduce to 0 of 6 ranks        round 0: 1 -> 0, 3 -> 2, 5 -> 4    round 1: 2 -> 0    round 2: 4 -> 0
//
// Node (k, i) covers the ranks from i 2^k up to (i+1) 2^k; the root holds what it is in, elsewhere the lowest
// rank does. That is the canonical tree, so its sums are too.
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

/// ceil(log2 N) messages of m bytes one after another; every rank but the root sends m.
void tree_reduce(Rank rank, const Shape& shape, const Emit& emit);
/// The same the other way round, with any rank as root.
void tree_broadcast(Rank rank, const Shape& shape, const Emit& emit);

}  // namespace rondo::schedule
