// How many file descriptors a job needs.
#pragma once
#include <cstdint>

namespace rondo::bootstrap {

/// Rank 0 has a control connection to every rank and, over TCP, one for data; and about so many of its own.
inline constexpr uint64_t root_descriptors_per_rank = 2, root_own_descriptors = 24;
constexpr uint64_t descriptors_of_root(uint64_t world) noexcept {
  return root_descriptors_per_rank * world + root_own_descriptors;
}

}  // namespace rondo::bootstrap
