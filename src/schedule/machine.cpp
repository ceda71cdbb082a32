#include "schedule/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

namespace rondo::schedule {
namespace {

class Machine {
 public:
  Machine(const Program& program, const Setting& setting, const OnFire& on_fire)
      : program_(program),
        setting_(setting),
        on_fire_(on_fire),
        links_(program.links.size()),
        ranks_(program.ranks.size()) {
    assert(setting.slots > 0 || program.form == Form::unfused);
    const uint32_t most = *std::ranges::max_element(setting.segments);
    windows_ = (most + setting.window - 1) / setting.window;
    size_t longest = 0;
    for (const RankProgram& rank : program.ranks) longest = std::max(longest, rank.tasks.size());
    every_task_.resize(longest);
    std::iota(every_task_.begin(), every_task_.end(), 0);
    for (Rank rank = 0; rank < ranks_.size(); rank++) {
      ranks_[rank].tasks.resize(program.ranks[rank].tasks.size());
      settle(ranks_[rank].turn, rank, listed(rank));
      wake(rank);
    }
    for (size_t l = 0; l < links_.size(); l++) {
      settle(links_[l].tx, program.links[l].from, program.links[l].sends);
      settle(links_[l].rx, program.links[l].to, program.links[l].receives);
    }
  }

  std::optional<Fault> run() {
    while (!awake_.empty()) {
      const Rank rank = awake_.back();
      awake_.pop_back();
      ranks_[rank].awake = false;
      visit(rank);
    }
    return stuck();
  }

 private:
  // A place in a list of tasks that is walked once per window.
  struct Cursor {
    uint32_t window = 0, position = 0, segment = 0;
  };
  struct LinkState {
    Cursor tx, rx;
    uint64_t sent = 0, taken = 0;  // segments
  };
  struct TaskState {
    uint32_t fired = 0,
             released = 0;  // segments dealt with; of those sent, how many the receiver is done with
  };
  struct RankState {
    std::vector<TaskState> tasks;
    Cursor turn;  // serial posting: the only task that may go on
    bool awake = false;
  };
  using List = std::span<const uint32_t>;

  List listed(Rank rank) const { return List(every_task_).first(program_.ranks[rank].tasks.size()); }
  const Task& task(Rank rank, uint32_t t) const { return program_.ranks[rank].tasks[t]; }
  uint32_t segments(Rank rank, uint32_t t) const { return setting_.segments[task(rank, t).chunk()]; }
  const Link& ends(uint32_t link) const { return program_.links[link]; }

  static uint32_t current(const Cursor& cursor, List list) {
    return cursor.position < list.size() ? list[cursor.position] : nobody;
  }
  // Moves on to the next task that has a segment in the cursor's window, or to the end.
  void settle(Cursor& cursor, Rank rank, List list) const {
    while (cursor.window < windows_) {
      for (; cursor.position < list.size(); cursor.position++, cursor.segment = 0) {
        const uint32_t before = cursor.window * setting_.window, all = segments(rank, list[cursor.position]);
        if (all > before && cursor.segment < std::min(setting_.window, all - before)) return;
      }
      cursor.window++;
      if (cursor.window < windows_) cursor.position = 0;
    }
  }
  void advance(Cursor& cursor, Rank rank, List list) const {
    cursor.segment++;
    settle(cursor, rank, list);
  }

  bool satisfied(Rank rank, uint32_t t, const Wait& wait) const {
    const TaskState& on = ranks_[rank].tasks[wait.on];
    const uint32_t segment = ranks_[rank].tasks[t].fired,
                   reuse = wait.why == Why::recycled ? setting_.window : 0;
    if (segment < reuse) return true;
    return (wait.released ? on.released : on.fired) >= std::min(segment + 1 - reuse, segments(rank, wait.on));
  }
  bool may_go_on(Rank rank, uint32_t t) const {
    if (ranks_[rank].tasks[t].fired == segments(rank, t)) return false;
    if (setting_.posting == Posting::serial && current(ranks_[rank].turn, listed(rank)) != t) return false;
    return std::ranges::all_of(program_.ranks[rank].waits_of(task(rank, t)),
                               [&](const Wait& wait) { return satisfied(rank, t, wait); });
  }

  bool arrived(uint32_t link) const {
    if (setting_.slots > 0) return links_[link].sent > links_[link].taken;
    const uint32_t sender = current(links_[link].tx, ends(link).sends);
    return sender != nobody && may_go_on(ends(link).from, sender);
  }
  bool its_turn_to_receive(Rank rank, uint32_t t) const {
    const uint32_t link = task(rank, t).rx;
    return current(links_[link].rx, ends(link).receives) == t;
  }
  bool its_turn_to_send(Rank rank, uint32_t t) const {
    const uint32_t link = task(rank, t).tx;
    return current(links_[link].tx, ends(link).sends) == t;
  }
  bool has_slot(uint32_t link) const { return links_[link].sent - links_[link].taken < setting_.slots; }

  bool try_to_fire(Rank rank, uint32_t t) {
    if (t == nobody) return false;
    const Task& it = task(rank, t);
    if (it.rx != nobody && (!arrived(it.rx) || !its_turn_to_receive(rank, t))) return false;
    // Without slots a send happens in its receiver's try.
    if (it.tx != nobody && (!has_slot(it.tx) || !its_turn_to_send(rank, t))) return false;
    if (!may_go_on(rank, t)) return false;
    if (it.rx != nobody && setting_.slots == 0)
      fire(ends(it.rx).from, current(links_[it.rx].tx, ends(it.rx).sends));
    fire(rank, t);
    return true;
  }

  void fire(Rank rank, uint32_t t) {
    const Task& it = task(rank, t);
    ranks_[rank].tasks[t].fired++;
    if (setting_.posting == Posting::serial) advance(ranks_[rank].turn, rank, listed(rank));
    if (it.rx != nobody) {
      LinkState& link = links_[it.rx];
      link.taken++;
      ranks_[ends(it.rx).from].tasks[it.sender].released++;
      advance(link.rx, rank, ends(it.rx).receives);
      wake(ends(it.rx).from);
    }
    if (it.tx != nobody) {
      links_[it.tx].sent++;
      advance(links_[it.tx].tx, rank, ends(it.tx).sends);
      wake(ends(it.tx).to);
    }
    // Without slots, what this rank can send now its receivers must try.
    if (setting_.slots == 0)
      for (uint32_t link : program_.ranks[rank].tx) wake(ends(link).to);
    if (on_fire_) on_fire_(rank, t);
  }

  void wake(Rank rank) {
    if (ranks_[rank].awake) return;
    ranks_[rank].awake = true;
    awake_.push_back(rank);
  }

  void visit(Rank rank) {
    const RankProgram& mine = program_.ranks[rank];
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t link : mine.rx)
        while (try_to_fire(rank, current(links_[link].rx, ends(link).receives))) moved = true;
      for (uint32_t link : mine.tx)
        while (try_to_fire(rank, current(links_[link].tx, ends(link).sends))) moved = true;
      for (uint32_t t : mine.local)
        while (try_to_fire(rank, t)) moved = true;
    }
  }

  // The first task that waits for something else than its turn, or failing that the first that is not done.
  std::optional<Fault> stuck() const {
    std::optional<Fault> any;
    for (Rank rank = 0; rank < ranks_.size(); rank++) {
      for (uint32_t t = 0; t < ranks_[rank].tasks.size(); t++) {
        if (ranks_[rank].tasks[t].fired == segments(rank, t)) continue;
        const Task& it = task(rank, t);
        const bool turn = (it.rx == nobody || its_turn_to_receive(rank, t)) &&
                          (it.tx == nobody || its_turn_to_send(rank, t));
        if (turn) return fault(program_.claim, rank, it.step, "is stuck: " + reason(rank, t));
        if (!any) any = fault(program_.claim, rank, it.step, "is stuck: its turn on its links never comes");
      }
    }
    return any;
  }

  std::string reason(Rank rank, uint32_t t) const {
    const Task& it = task(rank, t);
    for (const Wait& wait : program_.ranks[rank].waits_of(it))
      if (!satisfied(rank, t, wait))
        return fmt::format("it waits for step {} to {}", task(rank, wait.on).step,
                           wait.why == Why::data ? "give it data" : "be done with its buffer");
    if (it.tx != nobody && setting_.slots > 0 && !has_slot(it.tx))
      return fmt::format("all {} slots to rank {} are taken", setting_.slots, ends(it.tx).to);
    if (it.tx != nobody && it.rx == nobody)
      return fmt::format("rank {} does not come to meet it", ends(it.tx).to);
    if (it.rx != nobody) return fmt::format("nothing arrives from rank {}", ends(it.rx).from);
    return "it is not its turn";
  }

  const Program& program_;
  const Setting& setting_;
  const OnFire& on_fire_;
  uint32_t windows_ = 0;
  std::vector<LinkState> links_;
  std::vector<RankState> ranks_;
  std::vector<Rank> awake_;
  std::vector<uint32_t> every_task_;
};

}  // namespace

std::optional<Fault> run(const Program& program, const Setting& setting, const OnFire& on_fire) {
  return Machine(program, setting, on_fire).run();
}

}  // namespace rondo::schedule
