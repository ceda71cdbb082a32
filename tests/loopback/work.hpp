// What the tests of asynchronous operations have in common.
#pragma once
#include <atomic>
#include <functional>
#include <thread>

#include "ranks.hpp"
#include "rondo/work.hpp"

namespace rondo::test {

inline Work begun(Result<Work> work) {
  CHECK_MESSAGE(work.ok(), (work ? "" : work.error().message));
  return std::move(*work);
}

inline bool eventually(const std::function<bool()>& holds,
                       std::chrono::milliseconds patience = std::chrono::milliseconds(5000)) {
  const auto began = std::chrono::steady_clock::now();
  while (!holds() && since(began) < patience) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return holds();
}

/// Rank 0's operations on this wait for rank 1 until it is let go.
class Gate {
 public:
  void open() { opened_.store(true); }
  void pass() const {
    while (!opened_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<bool> opened_{false};
};

}  // namespace rondo::test
