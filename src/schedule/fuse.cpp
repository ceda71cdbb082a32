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

// How many steps read what each step leaves in the accumulator.
class Readers {
 public:
  explicit Readers(std::span<const Step> steps) : steps_(steps.data()) {
    first_.reserve(steps.size());
    for (const Step& step : steps) {
      const bool elsewhere = step.kind == StepKind::copy || step.kind == StepKind::reduce;
      if (step.source == Buffer::accumulator) read(elsewhere ? step.other : step.chunk, step.chunks);
      if (step.kind == StepKind::reduce && step.target == Buffer::accumulator) read(step.chunk, step.chunks);
      first_.push_back(readers_.size());
      if (step.target == Buffer::accumulator) write(step.chunk, step.chunks);
    }
  }
  bool one_each(const Step& step) const {
    const size_t first = first_[size_t(&step - steps_)];
    return std::all_of(readers_.begin() + first, readers_.begin() + first + step.chunks,
                       [](uint32_t readers) { return readers == 1; });
  }

 private:
  static constexpr size_t unwritten = SIZE_MAX;

  void read(uint32_t first, uint32_t chunks) {
    for (uint32_t chunk = first; chunk < first + chunks && chunk < latest_.size(); chunk++)
      if (latest_[chunk] != unwritten) readers_[latest_[chunk]]++;
  }
  void write(uint32_t first, uint32_t chunks) {
    if (latest_.size() < first + chunks) latest_.resize(first + chunks, unwritten);
    for (uint32_t chunk = first; chunk < first + chunks; chunk++) {
      latest_[chunk] = readers_.size();
      readers_.push_back(0);
    }
  }

  const Step* steps_;
  std::vector<size_t> first_;      // of each step: where its chunks are in readers_
  std::vector<uint32_t> readers_;  // of each chunk that a step writes
  std::vector<size_t> latest_;     // of each chunk: where what it holds now is in readers_
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
