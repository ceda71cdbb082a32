// Hierarchical schedules: ranks of one node settle among themselves what they can, so that as little as
// possible goes from node to node.
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

// The smallest node has L ranks, so the vector is cut into L slices of one chunk per node, and every node has a
// leader of each slice: its l-th rank. (1) The members of a node send their contributions to the leaders, who
// add them one after another. (2) The leaders of a slice run a ring over the nodes (ring.hpp), L rings at once.
// (3) They hand the results to the members of their node.
//
//   nodes {0 1 2} {3 4}      slice 0, chunks 0 and 1          slice 1, chunks 2 and 3
//   (1)                      1 -> 0 <- 2     4 -> 3           0 -> 1 <- 2     3 -> 4
//   (2)                           0 <------> 3                     1 <------> 4
//   (3)                      1 <- 0 -> 2     3 -> 4           0 <- 1 -> 2     4 -> 3
//
// Over the network a node sends 2(M-1)/M of the vector, as one rank of a ring of M does; the L leaders share it
// (Jia et al., "Highly scalable deep learning training system with mixed-precision: training ImageNet in four
// minutes", 2018, where one leader does it all). With every rank on a node of its own this is the ring.
void hierarchical_all_reduce(Rank rank, const Shape& shape, const Emit& emit);
uint32_t hierarchical_chunks(const Shape& shape);

// A chunk per rank. On every node a rank has a deputy, the one at its own place, counted round where a node is
// smaller. (1) Deputies add up what the members of their node contribute. (2) The sums go round the nodes, from
// the one after the chunk's own to the chunk's rank. The all-gather does the same the other way round.
//
//   nodes {0 1} {2 3}, chunk 1      1 <- 0    3 <- 2        then   3 --> 1
void hierarchical_reduce_scatter(Rank rank, const Shape& shape, const Emit& emit);
void hierarchical_all_gather(Rank rank, const Shape& shape, const Emit& emit);

// The root sends along a chain of leaders, itself and the first rank of every other node in order; each hands
// on to its node.
void hierarchical_broadcast(Rank rank, const Shape& shape, const Emit& emit);

// The same chain the other way round. (1) The members of a node send their contributions to its leader, who adds
// them one after another. (2) The sums go along the chain to the root, growing on the way: a node sends the vector
// once and receives it once, whatever the world.
//
//   nodes {0 1 2} {3 4}, root 1     0 -> 1 <- 2    4 -> 3        then   3 --> 1
void hierarchical_reduce(Rank rank, const Shape& shape, const Emit& emit);

}  // namespace rondo::schedule
