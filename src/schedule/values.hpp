// Symbolic values: expression trees over the ranks' contributions. Equal trees are one node (hash-consing),
// so that building and comparing them is cheap.
#pragma once
#include <bit>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/step.hpp"

namespace rondo::schedule {

using Value = uint32_t;
inline constexpr Value undefined = 0;

/// How a value travels: contributions and results narrow, partials wide.
enum class State : uint8_t { contribution, partial, result };

/// Ranks as bits: up to 64 of them.
class Values {
 public:
  struct Node {
    State state;
    uint32_t chunk;  // whose contribution: those of different chunks never mix
    uint64_t ranks;  // whose contributions it holds
    Value left, right;
  };

  Value contribution(Rank rank, uint32_t chunk) {
    return make({State::contribution, chunk, uint64_t(1) << rank, rank, chunk});
  }
  /// Every reduction commutes, to the bit: whoever holds the lowest rank comes first.
  Value combine(Value left, Value right) {
    if (std::countr_zero(at(left).ranks) > std::countr_zero(at(right).ranks)) std::swap(left, right);
    return make({State::partial, at(left).chunk, at(left).ranks | at(right).ranks, left, right});
  }
  Value finish(Value value) {
    return make({State::result, at(value).chunk, at(value).ranks, value, undefined});
  }

  const Node& at(Value value) const noexcept { return nodes_[value - 1]; }
  /// The order of summation: "0+((1+2)+3)".
  std::string tree(Value value) const;

 private:
  Value make(const Node& node);

  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, Value> known_;  // (state, left, right) -> node
};

}  // namespace rondo::schedule
