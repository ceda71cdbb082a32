// Two binary trees at once (Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan", Parallel Computing 35(12), 2009): the rounds of a tree without idle leaves.
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

// Half of the vector goes over either tree. A tree is in order over the places 1 to n: odd places are leaves,
// place p with k zeros at its end is k levels above them. The second tree has every rank at a place of the
// other parity, mirrored (n even) or moved on by one (n odd), so nobody is an inner node of both and nobody
// sends more than the whole vector in either direction:
//
//   6 ranks          half 0                  half 1
//                      3                       2              level 2
//                    /   \                   /   \            .
//                   1     5                 4     0           level 1
//                  / \   /                 / \   /
//                 0   2 4                 5   3 1             level 0: leaves
//
// All-reduce: the halves go up to the roots, which finish them, and down again. Segments follow each other
// through the trees.
void double_tree_all_reduce(Rank rank, const Shape& shape, const Emit& emit);
// Rooted: the trees are over all ranks but the root, which stands above both.
void double_tree_reduce(Rank rank, const Shape& shape, const Emit& emit);
void double_tree_broadcast(Rank rank, const Shape& shape, const Emit& emit);
inline constexpr uint32_t halves = 2;  // chunks

}  // namespace rondo::schedule
