#include "schedule/fuse.hpp"

#include <algorithm>
#include <optional>

namespace rondo::schedule {
namespace {

ActionKind single(StepKind kind) {
  switch (kind) {
    case StepKind::send:
      return ActionKind::send;
    case StepKind::recv:
      return ActionKind::recv;
    case StepKind::recv_reduce:
      return ActionKind::recv_reduce;
    case StepKind::copy:
      return ActionKind::copy;
    case StepKind::reduce:
      return ActionKind::reduce;
  }
  return ActionKind::copy;
}

bool reads(const Step& step, Buffer buffer, uint32_t chunk) {
  if (step.source == buffer) {
    const bool elsewhere = step.kind == StepKind::copy || step.kind == StepKind::reduce;
    if ((elsewhere ? step.other : step.chunk) == chunk) return true;
  }
  return step.kind == StepKind::reduce && step.target == buffer && step.chunk == chunk;
}

// What `in` followed by `out` becomes, if they can be joined.
std::optional<ActionKind> joined(const Step& in, const Step& out, std::span<const Step> all) {
  if (!receives(in) || !sends(out) || out.source != in.target || out.chunk != in.chunk ||
      out.chunks != in.chunks)
    return std::nullopt;
  if (in.target == Buffer::output)
    return in.kind == StepKind::recv ? ActionKind::recv_copy_send : ActionKind::recv_reduce_copy_send;
  if (in.kind != StepKind::recv_reduce) return std::nullopt;
  const auto readers = std::ranges::count_if(
      all, [&](const Step& step) { return reads(step, Buffer::accumulator, in.chunk); });
  if (readers != 1) return std::nullopt;
  return ActionKind::recv_reduce_send;
}

}  // namespace

std::vector<Action> fuse(std::span<const Step> steps) {
  std::vector<Action> actions;
  actions.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); i++) {
    if (i + 1 < steps.size()) {
      if (const auto kind = joined(steps[i], steps[i + 1], steps)) {
        actions.push_back({*kind, steps[i], steps[i + 1]});
        i++;
        continue;
      }
    }
    actions.push_back({single(steps[i].kind), steps[i], {}});
  }
  return actions;
}

std::vector<Action> unfused(std::span<const Step> steps) {
  std::vector<Action> actions;
  for (const Step& step : steps) actions.push_back({single(step.kind), step, {}});
  return actions;
}

std::vector<Step> steps_of(const Schedule& schedule, Rank rank, const Shape& shape) {
  std::vector<Step> steps;
  schedule.steps(rank, shape, [&](const Step& step) { steps.push_back(step); });
  return steps;
}

}  // namespace rondo::schedule
