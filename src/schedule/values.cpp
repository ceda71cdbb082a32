#include "schedule/values.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

namespace rondo::schedule {

Value Values::make(const Node& node) {
  const uint64_t key = uint64_t(node.state) << 62 | uint64_t(node.left) << 31 | node.right;
  const auto [place, fresh] = known_.try_emplace(key, Value(nodes_.size() + 1));
  if (fresh) nodes_.push_back(node);
  return place->second;
}

Value Values::combine(Value left, Value right) {
  if (at(left).lowest > at(right).lowest) std::swap(left, right);
  const size_t before = nodes_.size();
  const Value value = make({State::partial, at(left).chunk, at(left).lowest, 0, left, right});
  if (nodes_.size() == before) return value;
  nodes_.back().ranks = uint32_t(sets_.size() / words_);
  for (uint32_t i = 0; i < words_; i++) sets_.push_back(word(left, i) | word(right, i));
  return value;
}

uint64_t Values::word(Value value, uint32_t i) const noexcept {
  const Node& node = at(value);
  if (node.ranks != alone) return sets_[size_t(node.ranks) * words_ + i];
  return node.lowest / 64 == i ? uint64_t(1) << node.lowest % 64 : 0;
}

uint64_t Values::everyone(uint32_t i) const noexcept {
  const uint32_t ranks = world_ - 64 * i;
  return ranks >= 64 ? ~uint64_t(0) : (uint64_t(1) << ranks) - 1;
}

std::optional<Rank> Values::missing(Value value) const noexcept {
  for (uint32_t i = 0; i < words_; i++)
    if (const uint64_t lacks = everyone(i) & ~word(value, i)) return 64 * i + Rank(std::countr_zero(lacks));
  return std::nullopt;
}

std::optional<Rank> Values::common(Value left, Value right) const noexcept {
  for (uint32_t i = 0; i < words_; i++)
    if (const uint64_t both = word(left, i) & word(right, i)) return 64 * i + Rank(std::countr_zero(both));
  return std::nullopt;
}

std::string Values::tree(Value value) const {
  if (value == undefined) return "nothing";
  const Node& node = at(value);
  const auto operand = [&](Value side) {
    return at(side).state == State::partial ? fmt::format("({})", tree(side)) : tree(side);
  };
  switch (node.state) {
    case State::contribution:
      return fmt::format("{}", node.left);
    case State::partial:
      return fmt::format("{}+{}", operand(node.left), operand(node.right));
    case State::result:
      return tree(node.left);
  }
  return {};
}

}  // namespace rondo::schedule
