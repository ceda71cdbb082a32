// Symbolic values: expression trees over the ranks' contributions. Equal trees are one node (hash-consing),
// so that building and comparing them is cheap.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/step.hpp"

namespace rondo::schedule {

using Value = uint32_t;
inline constexpr Value undefined = 0;

/// How a value travels: contributions and results narrow, partials wide.
enum class State : uint8_t { contribution, partial, result };

class Values {
 public:
  struct Node {
    State state;
    uint32_t chunk;  // whose contribution: those of different chunks never mix
    Rank lowest;     // of those whose contributions it holds
    uint32_t ranks;  // which set they are, or `alone`
    Value left, right;
  };

  explicit Values(uint32_t world = 1) : world_(world), words_((world + 63) / 64) {}

  Value contribution(Rank rank, uint32_t chunk) {
    return make({State::contribution, chunk, rank, alone, rank, chunk});
  }
  /// Every reduction commutes, to the bit: whoever holds the lowest rank comes first.
  Value combine(Value left, Value right);
  Value finish(Value value) {
    const Node& node = at(value);
    return make({State::result, node.chunk, node.lowest, node.ranks, value, undefined});
  }

  const Node& at(Value value) const noexcept { return nodes_[value - 1]; }
  /// The lowest rank of the world whose contribution it lacks.
  std::optional<Rank> missing(Value value) const noexcept;
  /// The lowest rank whose contribution both hold.
  std::optional<Rank> common(Value left, Value right) const noexcept;
  /// The order of summation: "0+((1+2)+3)".
  std::string tree(Value value) const;

 private:
  static constexpr uint32_t alone = UINT32_MAX;  // no set is kept for one rank

  Value make(const Node& node);
  // Ranks 64 i and the next 63, as bits.
  uint64_t word(Value value, uint32_t i) const noexcept;
  uint64_t everyone(uint32_t i) const noexcept;

  uint32_t world_, words_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> sets_;                 // words_ each
  std::unordered_map<uint64_t, Value> known_;  // (state, left, right) -> node
};

}  // namespace rondo::schedule
