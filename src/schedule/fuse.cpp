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

// How many steps read each chunk of the accumulator.
class Readers {
 public:
  explicit Readers(std::span<const Step> steps) {
    for (const Step& step : steps) {
      const bool elsewhere = step.kind == StepKind::copy || step.kind == StepKind::reduce;
      if (step.source == Buffer::accumulator) count(elsewhere ? step.other : step.chunk, step.chunks);
      if (step.kind == StepKind::reduce && step.target == Buffer::accumulator) count(step.chunk, step.chunks);
    }
  }
  bool one_each(const Step& step) const {
    for (uint32_t chunk = step.chunk; chunk < step.chunk + step.chunks; chunk++)
      if (chunk >= readers_.size() || readers_[chunk] != 1) return false;
    return true;
  }

 private:
  void count(uint32_t first, uint32_t chunks) {
    if (readers_.size() < first + chunks) readers_.resize(first + chunks);
    for (uint32_t chunk = first; chunk < first + chunks; chunk++) readers_[chunk]++;
  }
  std::vector<uint32_t> readers_;
};

// What `in` followed by `out` becomes, if they can be joined.
std::optional<ActionKind> joined(const Step& in, const Step& out, const Readers& accumulator) {
  if (!receives(in) || !sends(out) || ((in.flags | out.flags) & (flag::fan | flag::published)) ||
      out.source != in.target || out.chunk != in.chunk || out.chunks != in.chunks)
    return std::nullopt;
  if (in.target == Buffer::output)
    return in.kind == StepKind::recv ? ActionKind::recv_copy_send : ActionKind::recv_reduce_copy_send;
  if (in.kind != StepKind::recv_reduce || !accumulator.one_each(in)) return std::nullopt;
  return ActionKind::recv_reduce_send;
}

// How many steps from the first on are one action.
uint32_t run_length(std::span<const Step> steps, Publications publications) {
  const Step& first = steps.front();
  const bool fan = first.kind == StepKind::recv_reduce && (first.flags & flag::fan);
  const bool publication =
      publications == Publications::yes && sends(first) && (first.flags & flag::published);
  if (!fan && !publication) return 1;
  const auto differs = [&](Step step) {
    step.other = first.other;
    return step != first;
  };
  return uint32_t(std::ranges::find_if(steps, differs) - steps.begin());
}

// The action of the steps from the first on, as far as they are not joined with others.
Action alone(std::span<const Step> steps, Publications publications) {
  const Step& first = steps.front();
  const uint32_t run = run_length(steps, publications);
  if (first.kind == StepKind::recv_reduce && (first.flags & flag::fan))
    return {ActionKind::reduce_fan, first, {}, run};
  if (sends(first) && (first.flags & flag::published) && publications == Publications::yes)
    return {ActionKind::publish, first, {}, run};
  return {single(first.kind), first, {}, 1};
}

}  // namespace

std::vector<Action> fuse(std::span<const Step> steps, Publications publications) {
  const Readers accumulator(steps);
  std::vector<Action> actions;
  actions.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); i += actions.back().steps()) {
    const auto kind = i + 1 < steps.size() ? joined(steps[i], steps[i + 1], accumulator) : std::nullopt;
    actions.push_back(kind ? Action{*kind, steps[i], steps[i + 1]} : alone(steps.subspan(i), publications));
  }
  return actions;
}

std::vector<Action> unfused(std::span<const Step> steps) {
  std::vector<Action> actions;
  actions.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); i += actions.back().steps())
    actions.push_back(alone(steps.subspan(i), Publications::no));
  return actions;
}

std::vector<Step> steps_of(const Schedule& schedule, Rank rank, const Shape& shape) {
  std::vector<Step> steps;
  schedule.steps(rank, shape, [&](const Step& step) { steps.push_back(step); });
  return steps;
}

}  // namespace rondo::schedule
