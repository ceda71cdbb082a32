// What may be wrong with a call's arguments, found before anything is sent.
#pragma once
#include <cstdint>

#include "engine/call.hpp"
#include "rondo/result.hpp"

namespace rondo {

/// No buffer is larger.
inline constexpr uint64_t most_bytes = uint64_t(1) << 48;

/// Bytes that a buffer occupies.
struct Range {
  Range(const void* data, uint64_t size) : first(reinterpret_cast<uintptr_t>(data)), bytes(size) {}
  uintptr_t first;
  uint64_t bytes;
  uintptr_t end() const { return first + bytes; }
};
bool overlap(const Range& a, const Range& b) noexcept;

/// Errors: invalid_argument for null or partly overlapping buffers, ranks outside the world, a reduction that
/// the type does not have, weights that mean nothing, and sizes that do not fit the address space.
Result<void> check(const engine::Call& call, Rank rank, uint32_t world);

}  // namespace rondo
