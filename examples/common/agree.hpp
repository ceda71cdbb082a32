// Ranks that start from different things would train nonsense without a sign of it. So they compare first.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "rondo/communicator.hpp"
#include "rondo/result.hpp"

namespace trainer {

/// Something that must be the same on every rank: what it is called, and its content or a digest of it.
struct Fact {
  std::string name, content;
};

/// Collective. `ready` says whether this rank could prepare; its facts are compared only if all could. Error:
/// names the ranks that are not ready, or the first fact in which ranks differ from rank 0 and those ranks.
rondo::Result<void> agree(rondo::Communicator& communicator, bool ready, std::span<const Fact> facts);

/// The same on the numbers gathered: `columns` per rank, the first 1 where the rank is ready.
rondo::Result<void> compare(std::span<const int64_t> gathered, std::span<const std::string> names);

}  // namespace trainer
