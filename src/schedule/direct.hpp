// Direct schedules: every rank deals with every other at once, in one or two rounds whatever the world.
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

// Direct: chunk c belongs to rank c, which takes the contributions of all others and reduces them in one go,
// in the order of the canonical tree; then it publishes the result (Thakur, Rabenseifner and Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005, name the halves
// pairwise exchange and spread). Contributions travel narrow, so 16-bit types cost no more than their bytes.
//
//   rank 0  input 0 1 2 3      --chunk 0--> rank 0     output 0 --> all
//   rank 1  input 0 1 2 3      --chunk 1--> rank 1     output 1 --> all
//   rank 2  input 0 1 2 3      --chunk 2--> rank 2     output 2 --> all
//   rank 3  input 0 1 2 3      --chunk 3--> rank 3     output 3 --> all
//                     round 0                   round 1
void direct_reduce_scatter(Rank rank, const Shape& shape, const Emit& emit);
void direct_all_gather(Rank rank, const Shape& shape, const Emit& emit);
void direct_all_reduce(Rank rank, const Shape& shape, const Emit& emit);
// Of a reduce the owners send their chunks of the result to the root instead.
void direct_reduce(Rank rank, const Shape& shape, const Emit& emit);
// The root publishes everything.
void direct_broadcast(Rank rank, const Shape& shape, const Emit& emit);
// Every rank publishes that it has come.
void direct_barrier(Rank rank, const Shape& shape, const Emit& emit);

// One-shot: every rank publishes all it has and reduces everything itself: one round, N times the work; for
// tiny messages. What is published is a copy, since in place the result overwrites the input while others may
// still read it.
void one_shot_all_reduce(Rank rank, const Shape& shape, const Emit& emit);
// All send to the root, which reduces.
void one_shot_reduce(Rank rank, const Shape& shape, const Emit& emit);

}  // namespace rondo::schedule
