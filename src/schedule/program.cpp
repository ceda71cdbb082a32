#include "schedule/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace rondo::schedule {
namespace {

std::vector<Action> actions_of(std::span<const Step> steps, Form form) {
  if (form == Form::unfused) return unfused(steps);
  std::vector<Action> fused = fuse(steps), actions;
  if (form == Form::fused) return fused;
  for (const Action& action : fused) {
    if (!action.fused() || action.kind == ActionKind::recv_reduce_send)
      actions.push_back(action);
    else
      for (const Action& half : unfused(std::array{action.in, action.out})) actions.push_back(half);
  }
  return actions;
}

// One action per chunk of a range: a range is nothing but its chunks one after another.
Action part_of(Action action, uint32_t i) {
  for (Step* step : {&action.in, &action.out}) {
    const bool local = step->kind == StepKind::copy || step->kind == StepKind::reduce;
    step->chunk += i;
    if (local) step->other += i;
    step->chunks = 1;
  }
  return action;
}

// Finds what each task of a rank waits for by walking its list once: who wrote each location last, and who
// has used it since.
class Waits {
 public:
  Waits(const Program& program, Rank rank, RankProgram& out)
      : program_(program), rank_(rank), out_(out), history_(locations(program.claim)) {}

  void collect() {
    for (uint32_t t = 0; t < out_.tasks.size(); t++) {
      const Action& action = out_.tasks[t].action;
      if (idle_copy(action)) continue;
      touches(action, [&](Touch touch, Buffer buffer, uint32_t chunk) {
        History& past = history_[location(program_.claim, program_.placement, rank_, buffer, chunk)];
        if (touch == Touch::write)
          write(t, past, buffer == Buffer::accumulator);
        else
          use(t, past, touch == Touch::sent);
      });
    }
    recycle();
    std::ranges::stable_sort(out_.waits, {}, &Wait::task);
    for (uint32_t w = 0, t = 0; t < out_.tasks.size(); t++) {
      out_.tasks[t].first_wait = w;
      while (w < out_.waits.size() && out_.waits[w].task == t) w++;
      out_.tasks[t].last_wait = w;
    }
  }

 private:
  struct Use {
    uint32_t task;
    bool sent;
    uint32_t before;  // the use before it
  };
  struct History {
    uint32_t writer = nobody, first_writer = nobody;
    uint32_t last_use = nobody;  // since `writer`; into uses_
    bool scratch = false;
  };

  // In place, a copy of a shard onto itself does nothing.
  bool idle_copy(const Action& action) const {
    if (action.kind != ActionKind::copy || (action.in.flags & flag::finish)) return false;
    const auto at = [&](Buffer buffer, uint32_t chunk) {
      return location(program_.claim, program_.placement, rank_, buffer, chunk);
    };
    return at(action.in.source, action.in.other) == at(action.in.target, action.in.chunk);
  }

  void wait(uint32_t task, uint32_t on, Why why, bool released) {
    if (task != on) out_.waits.push_back({task, on, why, released});
  }

  void use(uint32_t task, History& past, bool sent) {
    if (past.writer != nobody) wait(task, past.writer, Why::data, false);
    uses_.push_back({task, sent, past.last_use});
    past.last_use = uint32_t(uses_.size() - 1);
  }

  void write(uint32_t task, History& past, bool scratch) {
    for (uint32_t u = past.last_use; u != nobody; u = uses_[u].before)
      wait(task, uses_[u].task, Why::buffer, uses_[u].sent);
    if (past.writer != nobody) wait(task, past.writer, Why::buffer, false);
    if (past.first_writer == nobody) past.first_writer = task;
    past.writer = task;
    past.last_use = nobody;
    past.scratch = scratch;
  }

  // Every window uses the same accumulator: its first writer waits for the last users in the window before.
  void recycle() {
    for (const History& past : history_) {
      if (!past.scratch || past.first_writer == nobody) continue;
      for (uint32_t u = past.last_use; u != nobody; u = uses_[u].before)
        out_.waits.push_back({past.first_writer, uses_[u].task, Why::recycled, uses_[u].sent});
      out_.waits.push_back({past.first_writer, past.writer, Why::recycled, false});
    }
  }

  const Program& program_;
  Rank rank_;
  RankProgram& out_;
  std::vector<History> history_;
  std::vector<Use> uses_;
};

// Gives every task its links and joins each send to its receive: the k-th to the k-th.
void join(Program& program) {
  const uint32_t world = program.claim.shape.world;
  std::vector<uint32_t> link(size_t(world) * world, nobody);
  const auto between = [&](Rank from, Rank to) {
    uint32_t& id = link[size_t(from) * world + to];
    if (id == nobody) {
      id = uint32_t(program.links.size());
      program.links.push_back({from, to, {}, {}});
      program.ranks[from].tx.push_back(id);
      program.ranks[to].rx.push_back(id);
    }
    return id;
  };
  for (Rank rank = 0; rank < world; rank++) {
    RankProgram& mine = program.ranks[rank];
    for (uint32_t t = 0; t < mine.tasks.size(); t++) {
      Task& task = mine.tasks[t];
      if (task.action.receives()) {
        task.rx = between(task.action.in.other, rank);
        program.links[task.rx].receives.push_back(t);
      }
      if (task.action.sends()) {
        task.tx = between(rank, task.action.sending().other);
        program.links[task.tx].sends.push_back(t);
      }
      if (task.rx == nobody && task.tx == nobody) mine.local.push_back(t);
    }
  }
  for (const Link& joined : program.links)
    for (size_t k = 0; k < std::min(joined.sends.size(), joined.receives.size()); k++) {
      program.ranks[joined.to].tasks[joined.receives[k]].sender = joined.sends[k];
      program.ranks[joined.from].tasks[joined.sends[k]].receiver = joined.receives[k];
    }
}

std::string described(const Step& step) {
  const std::string what = step.chunks == 1 ? fmt::format("{} chunk {}", name_of(step.kind), step.chunk)
                                            : fmt::format("{} chunks {} to {}", name_of(step.kind),
                                                          step.chunk, step.chunk + step.chunks - 1);
  if (sends(step)) return fmt::format("{} to rank {}", what, step.other);
  if (receives(step)) return fmt::format("{} from rank {}", what, step.other);
  return fmt::format("{} from chunk {}", what, step.other);
}

}  // namespace

Claim claim_of(const Schedule& schedule, const Shape& shape) {
  Claim claim{schedule.operation, shape, schedule.chunks(shape), {}};
  for (Rank rank = 0; rank < shape.world; rank++) claim.steps.push_back(steps_of(schedule, rank, shape));
  return claim;
}

Fault fault(const Claim& claim, Rank rank, uint32_t step, const std::string& what) {
  const auto& steps = claim.steps[rank];
  if (step >= steps.size()) return {rank, step, fmt::format("rank {} after its last step {}", rank, what)};
  return {rank, step, fmt::format("rank {} step {} ({}) {}", rank, step, described(steps[step]), what)};
}

uint32_t location(const Claim& claim, Placement placement, Rank rank, Buffer buffer,
                  uint32_t chunk) noexcept {
  const uint32_t chunks = claim.chunks;
  if (buffer == Buffer::accumulator) return 2 * chunks + chunk;
  if (buffer == Buffer::output && placement == Placement::in_place) {
    const bool shard =
        claim.operation == Operation::reduce_scatter || claim.operation == Operation::all_gather;
    if (claim.operation == Operation::all_reduce || (shard && chunk == rank)) return chunk;
  }
  return buffer == Buffer::output ? chunks + chunk : chunk;
}

Program::Program(const Claim& of, Form as, Placement where)
    : claim(of), form(as), placement(where), ranks(of.shape.world) {
  for (Rank rank = 0; rank < claim.shape.world; rank++) {
    RankProgram& mine = ranks[rank];
    uint32_t step = 0;
    mine.tasks.reserve(claim.steps[rank].size());
    for (const Action& action : actions_of(claim.steps[rank], form)) {
      for (uint32_t i = 0; i < action.in.chunks; i++) {
        Task task;
        task.action = part_of(action, i);
        task.step = step;
        mine.tasks.push_back(task);
      }
      step += action.fused() ? 2 : 1;
    }
    Waits(*this, rank, mine).collect();
  }
  join(*this);
}

}  // namespace rondo::schedule
