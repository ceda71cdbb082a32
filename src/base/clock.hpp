// The one clock: monotonic, so that a changed wall clock moves no deadline.
#pragma once
#include <algorithm>
#include <chrono>

namespace rondo {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using std::chrono::milliseconds;

/// Any timeout; what is longer than the clock counts becomes thirty years.
inline TimePoint deadline_after(milliseconds timeout) {
  return Clock::now() + std::min(timeout, milliseconds(1'000'000'000'000));
}
/// Milliseconds from now to `deadline`, rounded up, never negative: a timeout for poll() and epoll_wait().
inline int milliseconds_until(TimePoint deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return int(std::clamp<int64_t>(left, 0, 1'000'000'000));
}

}  // namespace rondo
