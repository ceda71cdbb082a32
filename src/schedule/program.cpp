#include "schedule/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace rondo::schedule {
namespace {

std::vector<Action> actions_of(std::span<const Step> steps, Form form) {
  if (form == Form::unfused) return unfused(steps);
  std::vector<Action> fused = fuse(steps, form == Form::published ? Publications::yes : Publications::no),
                      actions;
  if (form != Form::stored) return fused;
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
class Joining {
 public:
  explicit Joining(Program& program)
      : program_(program), world_(program.claim.shape.world), links_(2 * size_t(world_) * world_, nobody) {}

  void run() {
    for (Rank rank = 0; rank < world_; rank++)
      for (uint32_t t = 0; t < program_.ranks[rank].tasks.size(); t++) open(rank, t);
    std::vector<size_t> sent(program_.links.size()), received(program_.links.size());
    for (RankProgram& mine : program_.ranks) {
      for (const Task& task : mine.tasks) {
        for (uint32_t p = task.first_rx; p < task.first_tx; p++)
          meet(mine.ports[p], received, program_.links[mine.ports[p].link].sends);
        for (uint32_t p = task.first_tx; p < task.last_tx; p++)
          meet(mine.ports[p], sent, program_.links[mine.ports[p].link].receives);
      }
    }
  }

 private:
  uint32_t between(Rank from, Rank to, const Step& step) {
    const bool published = program_.form == Form::published && (step.flags & flag::published);
    uint32_t& id = links_[(size_t(from) * world_ + to) * 2 + published];
    if (id == nobody) {
      id = uint32_t(program_.links.size());
      program_.links.push_back({from, to, {}, {}});
    }
    return id;
  }

  void open(Rank rank, uint32_t t) {
    RankProgram& mine = program_.ranks[rank];
    Task& task = mine.tasks[t];
    const auto& steps = program_.claim.steps[rank];
    task.first_rx = task.first_tx = uint32_t(mine.ports.size());
    const uint32_t run = task.action.run;
    for (uint32_t i = 0; task.action.receives() && i < run; i++) {
      const uint32_t link = between(steps[task.step + i].other, rank, task.action.in);
      mine.ports.push_back({link});
      program_.links[link].receives.push_back(t);
    }
    task.first_tx = uint32_t(mine.ports.size());
    const uint32_t sending = task.step + (task.action.fused() ? 1 : 0);
    for (uint32_t i = 0; task.action.sends() && i < run; i++) {
      const uint32_t link = between(rank, steps[sending + i].other, task.action.sending());
      mine.ports.push_back({link});
      program_.links[link].sends.push_back(t);
    }
    task.last_tx = uint32_t(mine.ports.size());
  }

  static void meet(Port& port, std::vector<size_t>& met, const std::vector<uint32_t>& others) {
    const size_t k = met[port.link]++;
    if (k < others.size()) port.task = others[k];
  }

  Program& program_;
  uint32_t world_;
  std::vector<uint32_t> links_;
};

std::string described(const Step& step) {
  const std::string what = step.chunks == 1 ? fmt::format("{} chunk {}", name_of(step.kind), step.chunk)
                                            : fmt::format("{} chunks {} to {}", name_of(step.kind),
                                                          step.chunk, step.chunk + step.chunks - 1);
  if (sends(step)) return fmt::format("{} to rank {}", what, step.other);
  if (receives(step)) return fmt::format("{} from rank {}", what, step.other);
  return fmt::format("{} from chunk {}", what, step.other);
}

// Whether a chunk of output lies where that of input does, in place.
bool is_joined(const Claim& claim, Rank rank, uint32_t chunk) noexcept {
  switch (claim.operation) {
    case Operation::all_reduce:
      return true;
    case Operation::reduce_scatter:
    case Operation::all_gather:
      return chunk == rank;
    case Operation::reduce:
      return rank == claim.shape.root;
    case Operation::gather:
    case Operation::scatter:
      return rank == claim.shape.root && chunk == rank;
    case Operation::broadcast:
    case Operation::barrier:
    case Operation::all_to_all:
    case Operation::send_recv:
      return false;
  }
  return false;
}

}  // namespace

Claim claim_of(const Schedule& schedule, const Shape& shape) {
  Claim claim{schedule.operation, shape, schedule.chunks(shape), {}};
  for (Rank rank = 0; rank < shape.world; rank++)
    claim.steps.push_back(steps_of(schedule, rank, shape_of(schedule.operation, shape, rank)));
  return claim;
}

Shape shape_of(Operation operation, const Shape& shape, Rank rank) noexcept {
  if (operation != Operation::send_recv) return shape;
  Shape mine = shape;
  mine.to = (rank + shape.root) % shape.world;
  mine.from = (rank + shape.world - shape.root) % shape.world;
  return mine;
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
  if (buffer != Buffer::output) return chunk;
  const bool joined = placement == Placement::in_place && is_joined(claim, rank, chunk);
  return joined ? chunk : chunks + chunk;
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
      step += action.steps();
    }
    Waits(*this, rank, mine).collect();
  }
  Joining(*this).run();
}

}  // namespace rondo::schedule
