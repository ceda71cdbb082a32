// What ranks tell each other before they take newcomers in. Pure.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "rondo/result.hpp"

namespace rondo {

struct Growth {
  uint32_t newcomers;
  std::array<char, 252> root;  // ended by a zero
};
static_assert(sizeof(Growth) == 256);

/// Errors: invalid_argument.
Result<Growth> growth_of(uint32_t world, uint32_t newcomers, std::string_view root);
/// Whether all ranks mean the same; else a mismatch that names the first that differs from rank 0, and both.
Result<void> same_growth(std::span<const Growth> by_rank);

}  // namespace rondo
