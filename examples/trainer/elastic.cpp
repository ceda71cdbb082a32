#include "elastic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace trainer {

bool survivable(const rondo::Error& error) {
  switch (error.code) {
    case rondo::ErrorCode::peer_lost:
    case rondo::ErrorCode::timeout:
    case rondo::ErrorCode::aborted:  // learned of one of these before this call
      return true;
    case rondo::ErrorCode::invalid_argument:
    case rondo::ErrorCode::mismatch:
    case rondo::ErrorCode::refused:
    case rondo::ErrorCode::system:
      return false;
  }
  return false;
}

rondo::Result<void> catch_up(rondo::Communicator& communicator, State& state, Report& report) {
  std::vector<uint64_t> steps(communicator.world());
  const auto own = std::span(steps).subspan(communicator.rank(), 1);
  own[0] = state.steps;
  if (auto done = communicator.all_gather(own, std::span(steps)); !done) return done;
  const auto [hindmost, furthest] = std::ranges::minmax_element(steps);
  if (*hindmost == *furthest) return {};
  if (*furthest - *hindmost > 1)
    return rondo::Error{rondo::ErrorCode::mismatch,
                        fmt::format("some ranks have done {} steps, others {}", *hindmost, *furthest)};

  const auto leader = rondo::Rank(std::ranges::find(steps, *furthest) - steps.begin());
  State::Packed packed = state.pack();
  if (auto done = communicator.broadcast(std::span(packed.values), leader); !done) return done;
  if (auto done = communicator.broadcast(std::span(packed.line), leader); !done) return done;
  if (state.steps == *furthest) return {};
  state.unpack(packed, *furthest);
  return report.step(state.last);
}

}  // namespace trainer
