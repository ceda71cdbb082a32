#include "engine/program.hpp"

#include <map>
#include <tuple>

namespace rondo::engine {
namespace {

using schedule::Action;
using schedule::ActionKind;
using schedule::Buffer;
using schedule::StepKind;
namespace flag = schedule::flag;

bool is_local(ActionKind kind) { return kind == ActionKind::copy || kind == ActionKind::reduce; }

Op op_of(const Action& action) {
  Op op{.kind = action.kind,
        .in_flags = action.in.flags,
        .out_flags = action.sending().flags,
        .source = action.in.source,
        .target = action.in.target,
        .chunk = action.in.chunk,
        .source_chunk = is_local(action.kind) ? action.in.other : action.in.chunk};
  if (action.kind == ActionKind::recv_reduce_send) op.target = Buffer::none;
  return op;
}

class Lowering {
 public:
  Lowering(Rank rank, uint32_t world, schedule::Publications publications)
      : rank_(rank), world_(world), publishes_(publications == schedule::Publications::yes) {}

  /// `steps`: those of the action, in the rank's list.
  void add(const Action& action, std::span<const schedule::Step> steps) {
    const auto index = uint32_t(program_.ops.size());
    Op op = op_of(action);
    if (action.kind == ActionKind::reduce_fan)
      op.fan = fan(steps, index);
    else if (action.receives())
      op.in_link = enqueue(action.in, false, index);
    if (action.sends()) op.out_link = enqueue(action.sending(), true, index);
    if (is_local(action.kind)) program_.local.push_back(index);
    op.producer = writer_of(op.source, op.source_chunk);
    if (op.kind == ActionKind::reduce) op.target_producer = writer_of(op.target, op.chunk);
    program_.accumulates |= op.source == Buffer::accumulator || op.target == Buffer::accumulator;
    program_.ops.push_back(op);
    if (op.target != Buffer::none) writers_[{op.target, op.chunk}] = index;
  }
  Program take() {
    for (const Op& op : program_.ops) {
      if (op.out_link == none) continue;
      mark_feeding(op);
      if (op.producer != none) mark_feeding(program_.ops[op.producer]);
    }
    return std::move(program_);
  }

 private:
  uint32_t fan(std::span<const schedule::Step> steps, uint32_t op) {
    const auto first = uint32_t(program_.fans.size());
    program_.fans.resize(first + world_, none);
    for (const schedule::Step& step : steps) program_.fans[first + step.other] = enqueue(step, false, op);
    return first;
  }
  uint32_t enqueue(const schedule::Step& step, bool sends, uint32_t op) {
    const bool published = publishes_ && (step.flags & flag::published);
    const Rank peer = published && sends ? rank_ : step.other;
    const auto [place, fresh] = links_.try_emplace({peer, sends, published}, uint32_t(program_.links.size()));
    if (fresh) program_.links.push_back({peer, sends, published, {}, false});
    program_.links[place->second].ops.push_back(op);
    return place->second;
  }
  void mark_feeding(const Op& op) {
    if (op.in_link != none) program_.links[op.in_link].feeds = true;
    for (Rank peer = 0; op.fan != none && peer < world_; peer++)
      if (const uint32_t link = program_.fans[op.fan + peer]; link != none) program_.links[link].feeds = true;
  }
  uint32_t writer_of(Buffer buffer, uint32_t chunk) const {
    const auto found = writers_.find({buffer, chunk});
    return found == writers_.end() ? none : found->second;
  }

  Rank rank_;
  uint32_t world_;
  bool publishes_;
  Program program_;
  std::map<std::tuple<Rank, bool, bool>, uint32_t> links_;
  std::map<std::pair<Buffer, uint32_t>, uint32_t> writers_;
};

}  // namespace

Program lower(const schedule::Schedule& schedule, Rank rank, const schedule::Shape& shape,
              schedule::Publications publications) {
  Lowering lowering(rank, shape.world, publications);
  const auto steps = schedule::steps_of(schedule, rank, shape);
  size_t at = 0;
  for (const Action& action : schedule::fuse(steps, publications)) {
    lowering.add(action, std::span(steps).subspan(at, action.steps()));
    at += action.steps();
  }
  Program program = lowering.take();
  program.chunks = schedule.chunks(shape);
  return program;
}

}  // namespace rondo::engine
