// Joins steps into the actions that an engine carries out: a receive with the send that passes its result on,
// which is one pass over memory instead of three; and runs (flag::fan, flag::published).
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
  reduce_fan,             // a run of recv_reduces: takes from every other rank at once
  publish,                // a run of sends: one block that every other rank reads
  recv_reduce_send,       // the partial goes straight from the reduction to the next rank; no accumulator
  recv_reduce_copy_send,  // the finished chunk is kept in output and sent on
  recv_copy_send,         // the received chunk is kept in output and sent on
};

/// `in` is the receiving half, the only step, or the first of a run; `out` is the sending half of a fused
/// action.
struct Action {
  ActionKind kind;
  Step in, out;
  uint32_t run = 1;  // steps that differ in their peers only

  bool fused() const noexcept { return kind >= ActionKind::recv_reduce_send; }
  bool receives() const noexcept { return fused() || schedule::receives(in); }
  bool sends() const noexcept { return fused() || schedule::sends(in); }
  const Step& sending() const noexcept { return fused() ? out : in; }
  uint32_t steps() const noexcept { return fused() ? 2 : run; }
};

enum class Publications : bool { no, yes };
/// Fuses neighbours. A partial is not stored when nothing but the fused send reads it. Runs of
/// published sends become one action with Publications::yes, which needs memory that all ranks see.
std::vector<Action> fuse(std::span<const Step> steps, Publications publications);
/// The same steps, one action each; but a fan is one action always.
std::vector<Action> unfused(std::span<const Step> steps);
/// Materialises one rank's steps.
std::vector<Step> steps_of(const Schedule& schedule, Rank rank, const Shape& shape);

}  // namespace rondo::schedule
