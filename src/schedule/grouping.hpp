// Which ranks share a node.
#pragma once
#include <vector>

#include "schedule/step.hpp"

namespace rondo::schedule {

using Members = std::vector<Rank>;  // of one node, in order

/// The nodes of a shape in the order of their first ranks.
std::vector<Members> nodes_of(const Shape& shape);
uint32_t smallest(const std::vector<Members>& nodes);
uint32_t largest(const std::vector<Members>& nodes);

/// Where a rank is: nodes[node][place].
struct Seat {
  uint32_t node, place;
};
/// [rank]
std::vector<Seat> seats_of(const std::vector<Members>& nodes, uint32_t world);

}  // namespace rondo::schedule
