// What may be wrong with a call's arguments, found before anything is sent.
#pragma once
#include <cstdint>

#include "engine/call.hpp"
#include "rondo/result.hpp"

namespace rondo {

/// Errors: invalid_argument for null or partly overlapping buffers, a root outside the world, and sizes that
/// do not fit the address space.
Result<void> check(const engine::Call& call, Rank rank, uint32_t world);

}  // namespace rondo
