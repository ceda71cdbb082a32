// Ways to spread ranks over nodes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace rondo::test {

using NodeMap = std::vector<uint32_t>;  // the node of every rank

/// Different ones: all on one node, every rank alone, two halves, nodes of 1, 2, 3, .. ranks, and ranks dealt out
/// to three nodes with large names that fall.
inline std::vector<NodeMap> node_maps(uint32_t world) {
  std::vector<NodeMap> maps(5);
  uint32_t growing = 0, left = 1;
  for (uint32_t rank = 0; rank < world; rank++) {
    maps[0].push_back(0);
    maps[1].push_back(rank);
    maps[2].push_back(rank < (world + 1) / 2 ? 0 : 1);
    maps[3].push_back(growing);
    if (--left == 0) left = ++growing + 1;
    maps[4].push_back(4000000000 - rank % 3);
  }
  std::vector<NodeMap> distinct;
  for (NodeMap& map : maps)
    if (std::ranges::find(distinct, map) == distinct.end()) distinct.push_back(std::move(map));
  return distinct;
}

}  // namespace rondo::test
