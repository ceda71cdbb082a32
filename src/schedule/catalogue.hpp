// Every schedule that exists: the verifier proves each entry, the engine and `rondo explain` pick from here.
#pragma once
#include <optional>
#include <span>

#include "schedule/step.hpp"

namespace rondo::schedule {

std::span<const Schedule> catalogue() noexcept;
/// Nothing for "auto" and names that are none.
std::optional<Algorithm> algorithm_named(std::string_view name) noexcept;
/// nullptr when the operation has no such algorithm.
const Schedule* find(Operation operation, Algorithm algorithm) noexcept;

}  // namespace rondo::schedule
