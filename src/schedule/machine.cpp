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
      ranks_[rank].fired.resize(program.ranks[rank].tasks.size());
      ranks_[rank].released.resize(program.ranks[rank].ports.size());
      settle(ranks_[rank].turn, rank, listed(rank));
      collect_dependents(rank);
    }
    for (size_t l = 0; l < links_.size(); l++) {
      settle(links_[l].tx, program.links[l].from, program.links[l].sends);
      settle(links_[l].rx, program.links[l].to, program.links[l].receives);
    }
  }

  std::optional<Fault> run() {
    for (Rank rank = 0; rank < ranks_.size(); rank++)
      for (uint32_t t = 0; t < program_.ranks[rank].tasks.size(); t++) awake_.push_back({rank, t});
    while (!awake_.empty()) {
      const auto [rank, t] = awake_.back();
      awake_.pop_back();
      if (t != nobody) try_to_fire(rank, t);
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
  struct RankState {
    std::vector<uint32_t> fired;     // [task] segments dealt with
    std::vector<uint32_t> released;  // [port] of the segments sent, how many the receiver is done with
    Cursor turn;                     // serial posting: the only task that may go on
    std::vector<uint32_t> dependents, first_dependent;  // tasks that wait for t: [first[t], first[t + 1])
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
    const RankState& mine = ranks_[rank];
    const uint32_t segment = mine.fired[t], reuse = wait.why == Why::recycled ? setting_.window : 0;
    if (segment < reuse) return true;
    const uint32_t needed = std::min(segment + 1 - reuse, segments(rank, wait.on));
    if (!wait.released) return mine.fired[wait.on] >= needed;
    const Task& on = task(rank, wait.on);
    return std::all_of(mine.released.begin() + on.first_tx, mine.released.begin() + on.last_tx,
                       [&](uint32_t released) { return released >= needed; });
  }
  bool may_go_on(Rank rank, uint32_t t) const {
    if (ranks_[rank].fired[t] == segments(rank, t)) return false;
    if (setting_.posting == Posting::serial && current(ranks_[rank].turn, listed(rank)) != t) return false;
    return std::ranges::all_of(program_.ranks[rank].waits_of(task(rank, t)),
                               [&](const Wait& wait) { return satisfied(rank, t, wait); });
  }

  bool arrived(uint32_t link) const {
    if (setting_.slots > 0) return links_[link].sent > links_[link].taken;
    const uint32_t sender = current(links_[link].tx, ends(link).sends);
    return sender != nobody && may_go_on(ends(link).from, sender);
  }
  std::span<const Port> rx_of(Rank rank, uint32_t t) const {
    return program_.ranks[rank].rx_of(task(rank, t));
  }
  std::span<const Port> tx_of(Rank rank, uint32_t t) const {
    return program_.ranks[rank].tx_of(task(rank, t));
  }
  bool its_turn_to_receive(Rank rank, uint32_t t) const {
    return std::ranges::all_of(rx_of(rank, t), [&](const Port& port) {
      return current(links_[port.link].rx, ends(port.link).receives) == t;
    });
  }
  bool its_turn_to_send(Rank rank, uint32_t t) const {
    return std::ranges::all_of(tx_of(rank, t), [&](const Port& port) {
      return current(links_[port.link].tx, ends(port.link).sends) == t;
    });
  }
  bool have_arrived(Rank rank, uint32_t t) const {
    return std::ranges::all_of(rx_of(rank, t), [&](const Port& port) { return arrived(port.link); });
  }
  bool have_slots(Rank rank, uint32_t t) const {
    return std::ranges::all_of(tx_of(rank, t), [&](const Port& port) { return has_slot(port.link); });
  }
  bool has_slot(uint32_t link) const { return links_[link].sent - links_[link].taken < setting_.slots; }

  void try_to_fire(Rank rank, uint32_t t) {
    if (!its_turn_to_receive(rank, t) || !have_arrived(rank, t)) return;
    // Without slots a send happens in its receiver's try.
    if (!have_slots(rank, t) || !its_turn_to_send(rank, t)) return;
    if (!may_go_on(rank, t)) return;
    if (setting_.slots == 0)
      for (const Port& port : rx_of(rank, t)) fire(ends(port.link).from, port.task);
    fire(rank, t);
  }

  void fire(Rank rank, uint32_t t) {
    ranks_[rank].fired[t]++;
    if (setting_.posting == Posting::serial) advance(ranks_[rank].turn, rank, listed(rank));
    for (const Port& port : rx_of(rank, t)) {
      links_[port.link].taken++;
      release(rank, port);
      advance(links_[port.link].rx, rank, ends(port.link).receives);
      wake(rank, current(links_[port.link].rx, ends(port.link).receives));
      wake(ends(port.link).from, current(links_[port.link].tx, ends(port.link).sends));
      wake_dependents(ends(port.link).from, port.task);
    }
    for (const Port& port : tx_of(rank, t)) {
      links_[port.link].sent++;
      advance(links_[port.link].tx, rank, ends(port.link).sends);
      wake(rank, current(links_[port.link].tx, ends(port.link).sends));
      wake_receiver(port.link);
    }
    wake(rank, t);
    wake_dependents(rank, t);
    if (setting_.posting == Posting::serial) wake(rank, current(ranks_[rank].turn, listed(rank)));
    if (on_fire_) on_fire_(rank, t);
  }

  // Tells the sender, at its port that leads here, that `rank` is done with a segment.
  void release(Rank rank, const Port& port) {
    const Rank from = ends(port.link).from;
    const auto sends = tx_of(from, port.task);
    const auto here = std::ranges::find_if(sends, [&](const Port& out) { return ends(out.link).to == rank; });
    ranks_[from].released[task(from, port.task).first_tx + size_t(here - sends.begin())]++;
  }

  // Something that this task waits for may have happened. Without slots, its receivers must try.
  void wake(Rank rank, uint32_t t) {
    if (t == nobody) return;
    awake_.push_back({rank, t});
    if (setting_.slots > 0) return;
    for (const Port& port : tx_of(rank, t)) wake_receiver(port.link);
  }
  void wake_receiver(uint32_t link) {
    awake_.push_back({ends(link).to, current(links_[link].rx, ends(link).receives)});
  }
  void wake_dependents(Rank rank, uint32_t t) {
    const RankState& mine = ranks_[rank];
    for (uint32_t d = mine.first_dependent[t]; d < mine.first_dependent[t + 1]; d++)
      wake(rank, mine.dependents[d]);
  }

  void collect_dependents(Rank rank) {
    RankState& mine = ranks_[rank];
    const auto& waits = program_.ranks[rank].waits;
    mine.first_dependent.resize(program_.ranks[rank].tasks.size() + 1);
    for (const Wait& wait : waits) mine.first_dependent[wait.on + 1]++;
    std::partial_sum(mine.first_dependent.begin(), mine.first_dependent.end(), mine.first_dependent.begin());
    mine.dependents.resize(waits.size());
    std::vector<uint32_t> next(mine.first_dependent.begin(), mine.first_dependent.end() - 1);
    for (const Wait& wait : waits) mine.dependents[next[wait.on]++] = wait.task;
  }

  // The first task that waits for something else than its turn, or failing that the first that is not done.
  std::optional<Fault> stuck() const {
    std::optional<Fault> any;
    for (Rank rank = 0; rank < ranks_.size(); rank++) {
      for (uint32_t t = 0; t < ranks_[rank].fired.size(); t++) {
        if (ranks_[rank].fired[t] == segments(rank, t)) continue;
        const uint32_t step = task(rank, t).step;
        if (its_turn_to_receive(rank, t) && its_turn_to_send(rank, t))
          return fault(program_.claim, rank, step, "is stuck: " + reason(rank, t));
        if (!any) any = fault(program_.claim, rank, step, "is stuck: its turn on its links never comes");
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
    for (const Port& port : tx_of(rank, t)) {
      if (setting_.slots > 0 && !has_slot(port.link))
        return fmt::format("all {} slots to rank {} are taken", setting_.slots, ends(port.link).to);
      if (rx_of(rank, t).empty()) return fmt::format("rank {} does not come to meet it", ends(port.link).to);
    }
    for (const Port& port : rx_of(rank, t))
      if (!arrived(port.link)) return fmt::format("nothing arrives from rank {}", ends(port.link).from);
    return "it is not its turn";
  }

  const Program& program_;
  const Setting& setting_;
  const OnFire& on_fire_;
  uint32_t windows_ = 0;
  std::vector<LinkState> links_;
  std::vector<RankState> ranks_;
  std::vector<std::pair<Rank, uint32_t>> awake_;  // tasks to try
  std::vector<uint32_t> every_task_;
};

}  // namespace

std::optional<Fault> run(const Program& program, const Setting& setting, const OnFire& on_fire) {
  return Machine(program, setting, on_fire).run();
}

}  // namespace rondo::schedule
