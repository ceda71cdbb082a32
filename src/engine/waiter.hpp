// How a driver waits: it spins briefly, then yields, then sleeps in one epoll on the links' descriptors and
// an eventfd doorbell. With more ranks than cores the spin budget is zero.
#pragma once
#include <memory>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "rondo/result.hpp"

namespace rondo::engine {

class Waiter {
 public:
  struct Budget {
    std::chrono::microseconds spin, yield;
  };
  /// `ranks_here`: how many ranks share this machine's cores.
  static Budget budget_for(uint32_t ranks_here);
  static Result<std::unique_ptr<Waiter>> make(Budget budget);

  /// Before the first wait.
  void set_budget(Budget budget) noexcept { budget_ = budget; }

  /// Driver. Edge-triggered: whoever waits must first have tried every descriptor until nothing moved.
  Result<void> watch(int fd);
  /// Driver: something moved.
  void moved() noexcept { idle_ = 0; }
  /// Driver: nothing moved. What to do next: try again, after a moment of waiting; sleep; or give up, since
  /// `deadline` has passed.
  enum class Next : uint8_t { again, sleep, late };
  Next idle(TimePoint deadline) noexcept;
  /// Driver: until something happens on a watched descriptor, the bell rings, or `deadline` has passed.
  void sleep(TimePoint deadline) noexcept;
  /// Any thread, async-signal-safe: wakes the driver now, or makes its next sleep return at once.
  void ring() noexcept;
  /// Readable when a sleeper would wake: for another epoll to wait for.
  int descriptor() const noexcept { return epoll_.get(); }

 private:
  Waiter(Budget budget, Descriptor epoll, Descriptor bell)
      : budget_(budget), epoll_(std::move(epoll)), bell_(std::move(bell)) {}

  Budget budget_;
  Descriptor epoll_, bell_;
  uint32_t idle_ = 0;  // times in a row that nothing moved
  TimePoint since_;
};

}  // namespace rondo::engine
