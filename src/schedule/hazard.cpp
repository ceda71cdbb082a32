#include "schedule/hazard.hpp"

#include <fmt/format.h>

namespace rondo::schedule {
namespace {

class Search {
 public:
  explicit Search(const Program& program) : program_(program) {
    for (const RankProgram& rank : program.ranks) {
      base_.push_back(nodes_);
      nodes_ += uint32_t(rank.tasks.size());
    }
    seen_.resize(nodes_);
    collect_sources();
  }

  std::optional<Fault> run() {
    for (Rank rank = 0; rank < base_.size(); rank++)
      for (uint32_t t = 0; t < program_.ranks[rank].tasks.size(); t++)
        if (auto found = check(rank, t)) return found;
    return std::nullopt;
  }

 private:
  uint32_t node(Rank rank, uint32_t task) const { return base_[rank] + task; }

  // Where the data of every task comes from: sources_[first_[n] .. first_[n + 1]).
  void collect_sources() {
    first_.reserve(nodes_ + 1);
    for (Rank rank = 0; rank < base_.size(); rank++) {
      for (const Task& task : program_.ranks[rank].tasks) {
        first_.push_back(uint32_t(sources_.size()));
        for (const Port& port : program_.ranks[rank].rx_of(task))
          sources_.push_back(node(program_.links[port.link].from, port.task));
        for (const Wait& wait : program_.ranks[rank].waits_of(task))
          if (wait.why == Why::data) sources_.push_back(node(rank, wait.on));
      }
    }
    first_.push_back(uint32_t(sources_.size()));
  }

  std::optional<Fault> check(Rank rank, uint32_t t) {
    const RankProgram& mine = program_.ranks[rank];
    for (const Wait& wait : mine.waits_of(mine.tasks[t])) {
      if (wait.why != Why::buffer) continue;
      const Task& user = mine.tasks[wait.on];
      const auto broken = [&](const std::string& what) {
        return fault(program_.claim, rank, mine.tasks[t].step, "overwrites what step " + what);
      };
      if (!wait.released && !flows(node(rank, wait.on), node(rank, t)))
        return broken(fmt::format("{} may still be using", user.step));
      for (const Port& port : mine.tx_of(user)) {
        const Rank receiver = program_.links[port.link].to;
        if (wait.released && !flows(node(receiver, port.task), node(rank, t)))
          return broken(fmt::format("{} may still be sending to rank {}",
                                    user.step + (user.action.fused() ? 1 : 0), receiver));
      }
    }
    return std::nullopt;
  }

  // Whether data flows from `from` to `to`: looks upstream of `to`.
  bool flows(uint32_t from, uint32_t to) {
    mark_++;
    stack_.assign(1, to);
    while (!stack_.empty()) {
      const uint32_t n = stack_.back();
      stack_.pop_back();
      if (n == from) return true;
      if (seen_[n] == mark_) continue;
      seen_[n] = mark_;
      for (uint32_t s = first_[n]; s < first_[n + 1]; s++) stack_.push_back(sources_[s]);
    }
    return false;
  }

  const Program& program_;
  uint32_t nodes_ = 0, mark_ = 0;
  std::vector<uint32_t> base_, first_, sources_;
  std::vector<uint32_t> seen_, stack_;
};

}  // namespace

std::optional<Fault> hazard(const Program& program) {
  if (program.claim.operation == Operation::barrier) return std::nullopt;
  return Search(program).run();
}

}  // namespace rondo::schedule
