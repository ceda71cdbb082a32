// Sums over all ranks that go on while the caller computes.
#pragma once
#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rondo/communicator.hpp"

namespace trainer {

/// Every rank starts the same sums in the same order.
template <class T>
class RankSum {
 public:
  virtual ~RankSum() = default;
  /// Begins to add `data` up over all ranks, in place: nobody may touch it before wait().
  virtual void start(std::span<T> data) = 0;
  /// Until all that was started has ended; the first error there was.
  virtual rondo::Result<void> wait() = 0;
};

/// By the ranks of a communicator, which outlives it. Between two sums another one may take its place.
template <class T>
class CommunicatorSum final : public RankSum<T> {
 public:
  explicit CommunicatorSum(rondo::Communicator& communicator) : communicator_(communicator) {}
  void start(std::span<T> data) override {
    auto work = communicator_.async_all_reduce(data);
    if (work)
      works_.push_back(std::move(*work));
    else if (!failure_)
      failure_ = work.error();
  }
  rondo::Result<void> wait() override {
    for (rondo::Work& work : works_)
      if (auto done = work.wait(); !done && !failure_) failure_ = done.error();
    works_.clear();
    if (const auto failure = std::exchange(failure_, std::nullopt)) return *failure;
    return {};
  }

 private:
  rondo::Communicator& communicator_;
  std::vector<rondo::Work> works_;
  std::optional<rondo::Error> failure_;
};

/// Of a world of one.
template <class T>
class NoSum final : public RankSum<T> {
 public:
  void start(std::span<T>) override {}
  rondo::Result<void> wait() override { return {}; }
};

}  // namespace trainer
