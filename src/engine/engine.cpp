#include "engine/engine.hpp"

#include <fmt/format.h>

#include "schedule/catalogue.hpp"

namespace rondo::engine {

Engine::Engine(const Place& place, Fabric& fabric, Waiter& waiter, const Failure& failure)
    : place_(place),
      fabric_(fabric),
      waiter_(waiter),
      failure_(failure),
      execution_(place.rank, place.world, counters_),
      links_(place.world) {}

Result<void> Engine::run(const Call& call, TimePoint deadline) {
  counters_.operations = ++sequence_;
  recorder_.begin(sequence_, call);
  waiter_.moved();
  const Program& program = program_for(call);
  Result<void> outcome = open_links(program, deadline);
  if (outcome) {
    const uint64_t window = window_for(program, call);
    execution_.start(program, call, header_of(call, place_.epoch, sequence_, window), window, links_);
    outcome = drive(deadline);
  }
  recorder_.end(sequence_, outcome.ok());
  if (!outcome) return explain(outcome.error(), call);
  return {};
}

const Program& Engine::program_for(const Call& call) {
  const auto key = std::tuple(call.operation, call.algorithm, call.root);
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  const schedule::Schedule* schedule = schedule::find(call.operation, call.algorithm);
  assert(schedule != nullptr);
  const auto publications =
      fabric_.publication() != nullptr ? schedule::Publications::yes : schedule::Publications::no;
  const schedule::Shape shape{.world = place_.world, .root = call.root};
  return programs_.emplace(key, lower(*schedule, place_.rank, shape, publications)).first->second;
}

// In elements per chunk. Partials in a link's memory bound it to W = slots - 1 segments
// (schedule/verify.hpp).
uint64_t Engine::window_for(const Program& program, const Call& call) {
  uint64_t bytes = uint64_t(1) << 20;
  for (const LinkQueue& link : program.links) {
    const Tx& tx = link.published ? *fabric_.publication() : *links_.pairs[link.peer].tx;
    const LinkCaps& caps = tx.caps();
    bytes = std::min<uint64_t>(bytes, uint64_t(caps.slots - 1) * caps.slot_bytes);
  }
  const auto& reducer = kernels::reducer(call.type, call.reduction);
  return std::max<uint64_t>(1, bytes / std::max(reducer.element_bytes, reducer.accumulator_bytes));
}

Result<void> Engine::open_links(const Program& program, TimePoint deadline) {
  for (const LinkQueue& link : program.links) {
    PeerLinks& peer = links_.of(link);
    if (link.published) {
      peer.tx = link.sends ? fabric_.publication() : nullptr;
      peer.rx = link.sends ? nullptr : fabric_.publication_of(link.peer);
      continue;
    }
    while (peer.tx == nullptr) {
      if (failure_.is_set()) return failure_.get();
      auto pair = fabric_.open(link.peer, 0);
      if (!pair) return pair.error();
      if (pair->tx == nullptr) {
        if (Clock::now() >= deadline)
          return late(fmt::format("rank {} has not answered the connection", link.peer), link.peer);
        waiter_.sleep(deadline);  // the bell rings when the link is there
        continue;
      }
      for (const int fd : {pair->tx->descriptor(), pair->rx->descriptor()})
        if (auto watched = waiter_.watch(fd); !watched) return watched.error();
      peer.tx = pair->tx;
      peer.rx = pair->rx;
    }
  }
  return {};
}

Result<void> Engine::drive(TimePoint deadline) {
  while (true) {
    const bool moved = execution_.pass();
    if (execution_.done()) return {};
    if (failure_.is_set()) return failure_.get();
    if (moved) {
      waiter_.moved();
      continue;
    }
    if (auto error = execution_.failure()) return *error;
    if (!rest(deadline)) return late(execution_.waiting_for(), execution_.first_awaited());
  }
}

// False when the deadline has passed.
bool Engine::rest(TimePoint deadline) {
  switch (waiter_.idle(deadline)) {
    case Waiter::Next::late:
      return false;
    case Waiter::Next::again:
      return true;
    case Waiter::Next::sleep:
      break;
  }
  fabric_.arm(true);
  if (!execution_.pass() && !failure_.is_set()) waiter_.sleep(deadline);
  fabric_.arm(false);
  return true;
}

Error Engine::late(const std::string& what, std::optional<Rank> peer) const {
  return {ErrorCode::timeout, "the deadline passed: " + what, peer};
}

Error Engine::explain(Error error, const Call& call) const {
  std::string text = fmt::format("rank {} of {}, operation #{} ({}): {}", place_.rank, place_.world,
                                 sequence_, describe(call), error.message);
  if (error.code == ErrorCode::timeout)
    text += fmt::format("; last operations here: {}", recorder_.text(sequence_, 4));
  error.message = std::move(text);
  return error;
}

}  // namespace rondo::engine
