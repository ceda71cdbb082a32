#include "transport/faulty/injector.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/log.hpp"

namespace rondo::faulty {
namespace {

bool concerns(const Fault& fault, Rank peer) noexcept {
  return peer == everyone || !fault.peer || fault.peer == peer;
}

}  // namespace

Injector::Injector(Rank rank, const std::vector<Fault>& faults) : rank_(rank) {
  for (const Fault& fault : faults)
    if (fault.rank == rank) states_.push_back({fault});
}

void Injector::begin(size_t header_bytes) noexcept {
  operation_++;
  header_bytes_ = header_bytes;
  for (State& state : states_)
    if (!state.struck && state.fault.operation == operation_ && !state.fault.after &&
        state.fault.kind != Fault::Kind::corrupt)
      strike(state, state.fault.peer.value_or(everyone), 0);
}

// Whether it waits for bytes that this operation sends to `peer`.
bool Injector::is_due(const State& state, Rank peer) const noexcept {
  return !state.struck && state.fault.operation == operation_ && concerns(state.fault, peer);
}

// In the operation's stream to a peer, header included.
uint64_t Injector::position(const Fault& fault) const noexcept {
  const uint64_t after = fault.after.value_or(0);
  return fault.header ? after : std::min(after, UINT64_MAX - header_bytes_) + header_bytes_;
}

void Injector::carried(Rank peer, uint64_t bytes) noexcept {
  for (State& state : states_)
    if (is_due(state, peer) && state.fault.kind != Fault::Kind::corrupt && bytes >= position(state.fault))
      strike(state, peer, bytes);
}

uint64_t Injector::unharmed(Rank peer, uint64_t bytes) const noexcept {
  uint64_t left = UINT64_MAX;
  for (const State& state : states_)
    if (is_due(state, peer) && position(state.fault) > bytes)
      left = std::min(left, position(state.fault) - bytes);
  return left;
}

bool Injector::is_struck(Fault::Kind kind, Rank peer) const noexcept {
  return std::ranges::any_of(states_, [&](const State& state) {
    return state.struck && state.fault.kind == kind && concerns(state.fault, peer);
  });
}

bool Injector::stalls(Rank peer) const noexcept {
  return std::ranges::any_of(states_, [&](const State& state) {
    return state.struck && state.fault.kind == Fault::Kind::stall && concerns(state.fault, peer) &&
           Clock::now() < state.over;
  });
}

TimePoint Injector::wake_at() const noexcept {
  TimePoint first = TimePoint::max();
  const TimePoint now = Clock::now();
  for (const State& state : states_)
    if (state.over > now) first = std::min(first, state.over);
  return first;
}

std::optional<uint64_t> Injector::corrupts(Rank peer, uint64_t from, uint64_t bytes) const noexcept {
  for (const State& state : states_)
    if (is_due(state, peer) && state.fault.kind == Fault::Kind::corrupt)
      if (const uint64_t at = position(state.fault); at >= from && at - from < bytes) return at;
  return std::nullopt;
}

void Injector::corrupted(Rank peer, uint64_t at) noexcept {
  for (State& state : states_)
    if (is_due(state, peer) && state.fault.kind == Fault::Kind::corrupt && position(state.fault) == at)
      return strike(state, peer, at);
}

void Injector::strike(State& state, Rank peer, uint64_t at) noexcept {
  state.struck = true;
  if (state.fault.lasts) state.over = deadline_after(*state.fault.lasts);
  const bool one = peer != everyone && state.fault.kind != Fault::Kind::kill;
  log::line(log::Level::warn, int(rank_), "fault injected: {} in operation {}{} after {} bytes",
            name_of(state.fault.kind), operation_, one ? fmt::format(" towards rank {}", peer) : "", at);
  if (state.fault.kind == Fault::Kind::kill) ::raise(SIGKILL);
}

}  // namespace rondo::faulty
