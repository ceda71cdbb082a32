#include "communicator/growth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/environment.hpp"
#include "base/root_address.hpp"

namespace rondo {

namespace {

std::string_view text_of(const Growth& growth) {
  return {growth.root.data(), strnlen(growth.root.data(), growth.root.size())};
}

}  // namespace

Result<Growth> growth_of(uint32_t world, uint32_t newcomers, std::string_view root) {
  const auto wrong = [](const std::string& why) {
    return Error{ErrorCode::invalid_argument, "grow: " + why};
  };
  if (newcomers == 0 || uint64_t(world) + newcomers > largest_world)
    return wrong(fmt::format(
        "{} newcomers cannot join {} ranks: there must be one at least, and {} ranks in all at most",
        newcomers, world, largest_world));
  if (root.empty()) return wrong("this communicator has no root of its own, so one must be given");
  Growth growth{newcomers, {}};
  if (root.size() >= growth.root.size())
    return wrong(fmt::format("a root may have {} bytes, not {}", growth.root.size() - 1, root.size()));
  if (const auto parsed = parse_root(root); !parsed) return wrong(parsed.error().message);
  std::ranges::copy(root, growth.root.begin());
  return growth;
}

Result<void> same_growth(std::span<const Growth> by_rank) {
  const Growth& first = by_rank[0];
  for (size_t rank = 1; rank < by_rank.size(); rank++) {
    const Growth& other = by_rank[rank];
    if (other.newcomers == first.newcomers && other.root == first.root) continue;
    return Error{ErrorCode::mismatch,
                 fmt::format("grow: rank {} expects {} newcomers at {}, rank 0 {} at {}", rank,
                             other.newcomers, text_of(other), first.newcomers, text_of(first)),
                 Rank(rank)};
  }
  return {};
}

}  // namespace rondo
