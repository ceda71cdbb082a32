// Lets the callers of one communicator through one at a time, in the order in which they came. Whoever is
// through is the driver: only the driver touches engine and links.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include "base/clock.hpp"

namespace rondo {

class Turnstile {
 public:
  /// The driver's turn; ends with its destruction. Empty when the deadline passed first.
  class Turn {
   public:
    explicit Turn(Turnstile* owner) noexcept : owner_(owner) {}
    Turn(Turn&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    ~Turn() {
      if (owner_ != nullptr) owner_->leave();
    }
    explicit operator bool() const noexcept { return owner_ != nullptr; }

   private:
    Turnstile* owner_;
  };

  Turn enter(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = next_++;
    if (changed_.wait_until(lock, deadline, [&] { return serving_ == ticket; })) return Turn(this);
    gone_.insert(ticket);
    return Turn(nullptr);
  }

 private:
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      do serving_++;
      while (gone_.erase(serving_) > 0);
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, serving_ = 0;
  std::set<uint64_t> gone_;  // tickets whose holders stopped waiting
};

}  // namespace rondo
