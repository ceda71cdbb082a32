// The one clock: monotonic, so that a changed wall clock moves no deadline.
#pragma once
#include <algorithm>
#include <chrono>

namespace rondo {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using std::chrono::milliseconds;

inline TimePoint deadline_after(milliseconds timeout) { return Clock::now() + timeout; }
/// Milliseconds from now to `deadline`, rounded up, never negative: a timeout for poll() and epoll_wait().
inline int milliseconds_until(TimePoint deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return int(std::clamp<int64_t>(left, 0, 1'000'000'000));
}

}  // namespace rondo
