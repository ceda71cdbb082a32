// The error word of a communicator: set once, by whoever first learns that it has failed; read by every
// spinning loop.
#pragma once
#include <atomic>
#include <mutex>

#include "rondo/result.hpp"

namespace rondo::engine {

class Failure {
 public:
  /// Any thread. True when this is the first error; later ones are dropped.
  bool set(Error error) {
    const std::lock_guard lock(mutex_);
    if (set_.load(std::memory_order_relaxed)) return false;
    error_ = std::move(error);
    set_.store(true, std::memory_order_relaxed);
    return true;
  }
  bool is_set() const noexcept { return set_.load(std::memory_order_relaxed); }
  /// Any thread, once is_set().
  Error get() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  std::atomic<bool> set_{false};
  mutable std::mutex mutex_;
  Error error_{ErrorCode::aborted, {}};
};

}  // namespace rondo::engine
