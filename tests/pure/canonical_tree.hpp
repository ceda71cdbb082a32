// The canonical tree as the verifier writes it.
#pragma once
#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <string>

namespace rondo::test {

/// Of `count` ranks from `first` on: node (k, i) covers the ranks from i 2^k up to (i+1) 2^k.
inline std::string canonical_tree(uint32_t count, uint32_t first = 0) {
  if (count == 1) return fmt::format("{}", first);
  const uint32_t left = std::bit_floor(count - 1);
  const auto side = [](uint32_t ranks, uint32_t from) {
    return ranks == 1 ? canonical_tree(ranks, from) : fmt::format("({})", canonical_tree(ranks, from));
  };
  return side(left, first) + "+" + side(count - left, first + left);
}

}  // namespace rondo::test
