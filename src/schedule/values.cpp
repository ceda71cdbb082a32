#include "schedule/values.hpp"

#include <fmt/format.h>

namespace rondo::schedule {

Value Values::make(const Node& node) {
  const uint64_t key = uint64_t(node.state) << 62 | uint64_t(node.left) << 31 | node.right;
  const auto [place, fresh] = known_.try_emplace(key, Value(nodes_.size() + 1));
  if (fresh) nodes_.push_back(node);
  return place->second;
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
