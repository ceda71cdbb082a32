// Random bits from the kernel, which never refuses them on the systems Rondo runs on (asserted).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace rondo {

void fill_random(std::span<std::byte> bytes) noexcept;
uint64_t random_number() noexcept;

}  // namespace rondo
