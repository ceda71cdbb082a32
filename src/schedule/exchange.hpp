// Schedules that move data unchanged from where they are to where they shall be, in one hop each.
#pragma once
#include "schedule/step.hpp"

namespace rondo::schedule {

/// Every rank sends its part to the root.
void direct_gather(Rank rank, const Shape& shape, const Emit& emit);
/// The root sends every rank its part.
void direct_scatter(Rank rank, const Shape& shape, const Emit& emit);
/// In round d every rank sends to the rank d + 1 places after it, so that no rank is everybody's first.
void direct_all_to_all(Rank rank, const Shape& shape, const Emit& emit);
/// To Shape::to, from Shape::from; either may be nobody, or both this rank.
void direct_send_recv(Rank rank, const Shape& shape, const Emit& emit);

}  // namespace rondo::schedule
