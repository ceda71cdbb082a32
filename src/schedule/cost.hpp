// What a schedule costs in the alpha-beta-gamma model: a message of n bytes takes alpha + n beta, reducing n
// bytes takes n gamma (Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel
// Computing 20(3), 1994; Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
// in MPICH", IJHPCA 19(1), 2005, who derive the closed forms of the usual algorithms).
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

struct LinkModel {
  double alpha = 0;  // seconds per message
  double beta = 0;   // seconds per byte
  double gamma = 0;  // seconds per byte reduced
};

/// A vector of `count` elements; partials travel in `accumulator_bytes` each.
struct Vector {
  uint64_t count = 0;
  uint32_t element_bytes = 4, accumulator_bytes = 4;
};

/// Seconds from a common start until the last rank is done, on N ranks:
///
///   ring reduce-scatter              (N-1) alpha +   (N-1)/N m beta +  (N-1)/N m gamma
///   ring all-gather                  (N-1) alpha +   (N-1)/N m beta
///   ring all-reduce                 2(N-1) alpha +  2(N-1)/N m beta +  (N-1)/N m gamma
///   halving reduce-scatter              lg alpha +   (N-1)/N m beta +  (N-1)/N m gamma
///   doubling all-gather                 lg alpha +   (N-1)/N m beta
///   halving all-reduce                2 lg alpha +  2(N-1)/N m beta +  (N-1)/N m gamma
///   double tree broadcast             2 lg alpha +        lg m beta
///   double tree reduce                2 lg alpha +        lg m beta +       lg m gamma
///   double tree all-reduce        (4 lg-2) alpha +  (2 lg-1) m beta + (lg-1/2) m gamma
///   hierarchical reduce-scatter    (M+S-2) alpha +   (N-1)/N m beta +  (N-1)/N m gamma
///   hierarchical all-gather        (M+S-2) alpha +   (N-1)/N m beta
///   hierarchical all-reduce       2(M+S-2) alpha +  2(N-1)/N m beta +  (N-1)/N m gamma
///
/// of m bytes, where N divides the count; lg = log2 N, a whole number, in double trees more than 1; N = MS ranks,
/// S on each of M nodes.
///
/// Found by walking the steps of all ranks. A rank sends one message, receives one and reduces one thing at a
/// time, all three at once; the message that is ready first goes first, of those the one of the earlier round.
/// Chunks that follow each other on a link in one round are one message; each goes on as soon as it can, so
/// where a rank deals with several a round the three parts overlap and together cost less than their sum.
/// Chunks are not cut into segments, so nothing else is pipelined: a double tree, which lives on that, looks
/// worse here than it is. A message without elements is sent only as the first of its link. Copies are free.
double cost(const Schedule& schedule, const Shape& shape, const Vector& vector, const LinkModel& model);

}  // namespace rondo::schedule
