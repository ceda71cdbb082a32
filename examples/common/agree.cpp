#include "agree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "digest.hpp"

namespace trainer {
namespace {

// The first 60 bits of the SHA-256.
int64_t digest(const std::string& content) {
  return std::stoll(sha256_of(content).substr(0, 15), nullptr, 16);
}

}  // namespace

rondo::Result<void> compare(std::span<const int64_t> gathered, std::span<const std::string> names) {
  const size_t columns = 1 + names.size(), ranks = gathered.size() / columns;
  // The ranks whose `column` is not `expected`.
  const auto others = [&](size_t column, int64_t expected) {
    std::vector<size_t> odd;
    for (size_t rank = 0; rank < ranks; rank++)
      if (gathered[rank * columns + column] != expected) odd.push_back(rank);
    return odd;
  };
  if (const auto late = others(0, 1); !late.empty())
    return rondo::Error{
        rondo::ErrorCode::invalid_argument,
        fmt::format("rank {} could not start; its own message says why", fmt::join(late, ", "))};
  for (size_t i = 0; i < names.size(); i++)
    if (const auto odd = others(1 + i, gathered[1 + i]); !odd.empty())
      return rondo::Error{rondo::ErrorCode::mismatch,
                          fmt::format("rank {} has another {} than rank 0: nothing would be learned "
                                      "together",
                                      fmt::join(odd, ", "), names[i])};
  return {};
}

rondo::Result<void> agree(rondo::Communicator& communicator, bool ready, std::span<const Fact> facts) {
  std::vector<int64_t> mine{ready ? 1 : 0};
  std::vector<std::string> names;
  for (const Fact& fact : facts) {
    mine.push_back(digest(fact.content));
    names.push_back(fact.name);
  }
  std::vector<int64_t> all(mine.size() * communicator.world());
  if (auto done = communicator.all_gather(std::span<const int64_t>(mine), std::span(all)); !done) return done;
  return compare(all, names);
}

}  // namespace trainer
