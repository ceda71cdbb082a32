#include "schedule/cost.hpp"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "schedule/layout.hpp"
#include "schedule/program.hpp"

namespace rondo::schedule {
namespace {

// Walks the steps in the order of time. A step begins when all it waits for has happened: its waits, its
// message, and for a send the message before it on its link.
class Walk {
 public:
  Walk(const Program& program, const Vector& vector, const LinkModel& model)
      : program_(program),
        vector_(vector),
        model_(model),
        ranks_(program.ranks.size()),
        sent_round_(program.links.size(), nothing_sent) {
    for (Rank rank = 0; rank < ranks_.size(); rank++) {
      const RankProgram& mine = program.ranks[rank];
      ranks_[rank].tasks.resize(mine.tasks.size());
      for (uint32_t t = 0; t < mine.tasks.size(); t++) {
        State& state = ranks_[rank].tasks[t];
        for (const Wait& wait : mine.waits_of(mine.tasks[t])) {
          if (wait.why == Why::recycled) continue;  // only one window here
          (wait.released ? ranks_[rank].tasks[wait.on].when_released : ranks_[rank].tasks[wait.on].when_done)
              .push_back(t);
          state.missing++;
        }
        state.missing += uint32_t(mine.rx_of(mine.tasks[t]).size());
      }
    }
    for (const Link& link : program.links)
      for (size_t k = 1; k < link.sends.size(); k++) {
        ranks_[link.from].tasks[link.sends[k - 1]].when_done.push_back(link.sends[k]);
        ranks_[link.from].tasks[link.sends[k]].missing++;
      }
  }

  double run() {
    std::vector<std::pair<Rank, uint32_t>> free;  // found before any begins and frees others
    for (Rank rank = 0; rank < ranks_.size(); rank++)
      for (uint32_t t = 0; t < ranks_[rank].tasks.size(); t++)
        if (ranks_[rank].tasks[t].missing == 0) free.push_back({rank, t});
    for (const auto& [rank, t] : free) begin(rank, t);
    while (!offers_.empty()) {
      const auto [time, round, rank, t] = offers_.top();
      offers_.pop();
      const Rank to = task(rank, t).action.in.other;
      const double start = std::max({time, ranks_[rank].out_free, ranks_[to].in_free});
      if (start > time)
        offers_.push({start, round, rank, t});
      else
        transfer(rank, t, start);
    }
    return end_;
  }

 private:
  struct State {
    double ready = 0;
    uint32_t missing = 0;                            // of what it waits for
    std::vector<uint32_t> when_done, when_released;  // tasks of this rank that wait for it
  };
  struct RankState {
    std::vector<State> tasks;
    double out_free = 0, in_free = 0, reducer_free = 0;
  };
  using Offer = std::tuple<double, uint32_t, Rank, uint32_t>;  // time, round, rank, task

  const Task& task(Rank rank, uint32_t t) const { return program_.ranks[rank].tasks[t]; }

  double elements(Rank rank, Buffer buffer, uint32_t chunk) const {
    const Claim& claim = program_.claim;
    return double(Layout(claim.operation, vector_.count, claim.chunks, {rank, claim.shape.world})
                      .extent(buffer, chunk)
                      .count);
  }

  void begin(Rank rank, uint32_t t) {
    const Step& step = task(rank, t).action.in;
    const double ready = ranks_[rank].tasks[t].ready;
    if (sends(step)) return offers_.push({ready, step.round, rank, t});
    double done = ready;
    if (step.kind == StepKind::recv_reduce || step.kind == StepKind::reduce) {
      const double bytes =
          task(rank, t).action.run * elements(rank, step.target, step.chunk) * vector_.element_bytes;
      double& free = ranks_[rank].reducer_free;
      done = free = std::max(ready, free) + bytes * model_.gamma;
    }
    end_ = std::max(end_, done);
    happen(rank, ranks_[rank].tasks[t].when_done, done);
    for (const Port& port : program_.ranks[rank].rx_of(task(rank, t))) {
      const Rank from = program_.links[port.link].from;
      happen(from, ranks_[from].tasks[port.task].when_released, done);
    }
  }

  void transfer(Rank rank, uint32_t t, double start) {
    const Step& step = task(rank, t).action.in;
    const double count = elements(rank, step.source, step.chunk);
    const Port& port = program_.ranks[rank].tx_of(task(rank, t)).front();  // unfused: the only one
    const bool first = program_.links[port.link].sends.front() == t;
    const double bytes =
        count * (step.flags & flag::wide ? vector_.accumulator_bytes : vector_.element_bytes);
    double done = start;
    if (count > 0 || first) {
      // What follows on its link in the same round is the same message.
      if (std::exchange(sent_round_[port.link], step.round) != step.round) done += model_.alpha;
      done += bytes * model_.beta;
    }
    ranks_[rank].out_free = ranks_[step.other].in_free = done;
    end_ = std::max(end_, done);
    happen(rank, ranks_[rank].tasks[t].when_done, done);
    arrive(step.other, port.task, done);
  }

  void happen(Rank rank, const std::vector<uint32_t>& waiting, double time) {
    for (uint32_t t : waiting) arrive(rank, t, time);
  }
  // One of the things that a task waits for has come at `time`.
  void arrive(Rank rank, uint32_t t, double time) {
    State& state = ranks_[rank].tasks[t];
    state.ready = std::max(state.ready, time);
    if (--state.missing == 0) begin(rank, t);
  }

  static constexpr uint32_t nothing_sent = UINT32_MAX;

  const Program& program_;
  const Vector& vector_;
  const LinkModel& model_;
  std::vector<RankState> ranks_;
  std::vector<uint32_t> sent_round_;  // of each link
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers_;
  double end_ = 0;
};

}  // namespace

double cost(const Schedule& schedule, const Shape& shape, const Vector& vector, const LinkModel& model) {
  const Claim claim = claim_of(schedule, shape);
  return Walk(Program(claim, Form::unfused, Placement::out_of_place), vector, model).run();
}

}  // namespace rondo::schedule
