// Joins a receive with the send that passes its result on: one pass over memory instead of three.
#pragma once
#include <span>
#include <vector>

#include "schedule/step.hpp"

namespace rondo::schedule {

enum class ActionKind : uint8_t {
  send,
  recv,
  recv_reduce,
  copy,
  reduce,
  recv_reduce_send,       // the partial goes straight from the reduction to the next rank; no accumulator
  recv_reduce_copy_send,  // the finished chunk is kept in output and sent on
  recv_copy_send,         // the received chunk is kept in output and sent on
};

/// `in` is the receiving half, or the only step; `out` is the sending half of a fused action.
struct Action {
  ActionKind kind;
  Step in, out;

  bool fused() const noexcept { return kind >= ActionKind::recv_reduce_send; }
  bool receives() const noexcept { return fused() || schedule::receives(in); }
  bool sends() const noexcept { return fused() || schedule::sends(in); }
  const Step& sending() const noexcept { return fused() ? out : in; }
};

/// Fuses neighbours. An accumulator chunk is elided only when nothing but the fused send reads it.
std::vector<Action> fuse(std::span<const Step> steps);
/// The same steps, one action each.
std::vector<Action> unfused(std::span<const Step> steps);
/// Materialises one rank's steps.
std::vector<Step> steps_of(const Schedule& schedule, Rank rank, const Shape& shape);

}  // namespace rondo::schedule
