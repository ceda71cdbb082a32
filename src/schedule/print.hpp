// A schedule for people: a line per step, and what it comes to.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "schedule/step.hpp"

namespace rondo::schedule {

/// Receives the text piece by piece, so that no world is too large to print.
using Write = std::function<void(std::string_view)>;

/// A line "rank round kind peer chunk" per step, of one rank or of all; lines that begin with # explain. A
/// step without a peer has "-" there.
void print_text(const Schedule& schedule, const Shape& shape, std::optional<Rank> rank, const Write& write);
/// The same as one JSON object, with buffers and flags of every step.
void print_json(const Schedule& schedule, const Shape& shape, std::optional<Rank> rank, const Write& write);

}  // namespace rondo::schedule
