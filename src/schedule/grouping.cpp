#include "schedule/grouping.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_map>

namespace rondo::schedule {

std::vector<Members> nodes_of(const Shape& shape) {
  assert(shape.nodes.empty() || shape.nodes.size() == shape.world);
  std::vector<Members> nodes;
  std::unordered_map<uint32_t, size_t> index;  // by name
  for (Rank rank = 0; rank < shape.world; rank++) {
    const auto [at, fresh] = index.try_emplace(shape.nodes.empty() ? 0 : shape.nodes[rank], nodes.size());
    if (fresh) nodes.emplace_back();
    nodes[at->second].push_back(rank);
  }
  return nodes;
}

uint32_t smallest(const std::vector<Members>& nodes) {
  return uint32_t(std::ranges::min_element(nodes, {}, &Members::size)->size());
}

uint32_t largest(const std::vector<Members>& nodes) {
  return uint32_t(std::ranges::max_element(nodes, {}, &Members::size)->size());
}

std::vector<Seat> seats_of(const std::vector<Members>& nodes, uint32_t world) {
  std::vector<Seat> seats(world);
  for (uint32_t node = 0; node < nodes.size(); node++)
    for (uint32_t place = 0; place < nodes[node].size(); place++) seats[nodes[node][place]] = {node, place};
  return seats;
}

}  // namespace rondo::schedule
