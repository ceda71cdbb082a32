// Who drives the operations of a communicator, and in which order: with a driver that moves nothing by
// itself.
#include "communicator/operations.hpp"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <future>
#include <thread>
#include <vector>

namespace rondo {
namespace {

using engine::Progress;
using Kind = Operations::Next::Kind;

// Each operation needs as many permits as passes; without one its driver sleeps. Notes who drove what.
class FakeDriver final : public Driver {
 public:
  void begin(Operation& operation) override {
    CHECK(running_ == nullptr);
    running_ = &operation;
    order.push_back(&operation);
    drivers.push_back(std::this_thread::get_id());
    if (failed) operation.error = Error{ErrorCode::aborted, "failed"};
  }
  Progress advance(Operation& operation) override {
    CHECK(running_ == &operation);
    CHECK(!inside_.exchange(true));
    const Progress progress = pass(operation);
    if (progress == Progress::ended) running_ = nullptr;
    inside_ = false;
    return progress;
  }
  TimePoint wake_at() const override { return running_->deadline; }
  void sleep(TimePoint until) override {
    std::unique_lock lock(mutex_);
    sleepers++;
    bell_.wait_until(lock, std::min(until, deadline_after(milliseconds(20'000))), [&] { return rung_; });
    sleepers--;
    rung_ = false;
  }
  Error too_late(const Operation&) override {
    failed = true;
    return {ErrorCode::timeout, "too late"};
  }
  void ring() override {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    bell_.notify_all();
  }
  bool call_service() noexcept override {
    calls++;
    return true;
  }

  void permit(int passes) {
    permits_ += passes;
    ring();
  }

  std::vector<const Operation*> order;
  std::vector<std::thread::id> drivers;
  std::atomic<bool> failed{false};
  std::atomic<int> calls{0}, sleepers{0};

 private:
  Progress pass(Operation& operation) {
    if (failed && !operation.error) operation.error = Error{ErrorCode::aborted, "failed"};
    if (operation.error) return Progress::ended;
    if (Clock::now() >= operation.deadline) {
      operation.error = Error{ErrorCode::timeout, "late"};
      failed = true;
      return Progress::ended;
    }
    if (permits_ == 0) return Progress::asleep;
    permits_--;
    return Progress::ended;
  }

  const Operation* running_ = nullptr;
  std::atomic<bool> inside_{false};
  std::atomic<int> permits_{0};
  std::mutex mutex_;
  std::condition_variable bell_;
  bool rung_ = false;
};

struct Queued : Operation {
  explicit Queued(milliseconds timeout = milliseconds(10'000)) : Operation{{}, deadline_after(timeout)} {}
};

void until(const std::function<bool()>& holds) {
  const TimePoint limit = deadline_after(milliseconds(10'000));
  while (!holds() && Clock::now() < limit) std::this_thread::sleep_for(milliseconds(1));
  CHECK(holds());
}

}  // namespace

TEST_CASE("operations: a blocking call on an idle communicator runs in its caller, and calls nobody") {
  FakeDriver driver;
  Operations operations(driver);
  driver.permit(1);
  Queued one;
  operations.run(one);
  CHECK(one.ended);
  CHECK(!one.error);
  CHECK(driver.drivers == std::vector{std::this_thread::get_id()});
  CHECK(driver.calls == 0);
  CHECK(operations.serve().kind == Kind::nothing);
}

TEST_CASE("operations: what nobody waits for is the service's, in order, and it is called once") {
  FakeDriver driver;
  Operations operations(driver);
  std::array<Queued, 3> all;
  for (Queued& one : all) operations.submit(one);
  CHECK(driver.calls == 1);
  const auto next = operations.serve();
  CHECK(next.kind == Kind::sleep);
  CHECK(next.at == all[0].deadline);
  driver.permit(2);
  CHECK(operations.serve().kind == Kind::sleep);
  CHECK(all[1].ended);
  CHECK(!all[2].ended);
  driver.permit(1);
  CHECK(operations.serve().kind == Kind::nothing);
  CHECK(driver.order == std::vector<const Operation*>{&all[0], &all[1], &all[2]});
  CHECK(driver.calls == 1);
}

TEST_CASE("operations: who waits takes over from the service, drives all that comes before, and hands back") {
  FakeDriver driver;
  Operations operations(driver);
  std::array<Queued, 3> all;
  for (Queued& one : all) operations.submit(one);
  CHECK(operations.serve().kind == Kind::sleep);
  auto waiter = std::async(std::launch::async, [&] {
    CHECK(operations.wait(all[1], TimePoint::max()));
    return std::this_thread::get_id();
  });
  until([&] { return driver.sleepers == 1; });
  CHECK(operations.serve().kind == Kind::nothing);  // it does not interfere
  CHECK(driver.calls == 1);
  driver.permit(2);
  const auto id = waiter.get();
  CHECK(all[0].ended);
  CHECK(!all[2].ended);
  CHECK(driver.drivers[1] == id);
  CHECK(driver.calls == 2);  // one is left, and nobody waits
  driver.permit(1);
  CHECK(operations.serve().kind == Kind::nothing);
  CHECK(all[2].ended);
}

TEST_CASE("operations: of two who wait, the second drives on when the first has its own") {
  FakeDriver driver;
  Operations operations(driver);
  Queued first, second;
  auto one = std::async(std::launch::async, [&] { operations.run(first); });
  until([&] { return driver.sleepers == 1; });
  auto two = std::async(std::launch::async, [&] { operations.run(second); });
  std::this_thread::sleep_for(milliseconds(20));
  driver.permit(1);
  one.get();
  until([&] { return driver.sleepers == 1; });
  CHECK(!second.ended);
  driver.permit(1);
  two.get();
  CHECK(driver.order == std::vector<const Operation*>{&first, &second});
  CHECK(driver.drivers[0] != driver.drivers[1]);
  CHECK(driver.calls == 0);
}

TEST_CASE("operations: a wait that times out changes nothing, and the service goes on") {
  FakeDriver driver;
  Operations operations(driver);
  Queued one;
  operations.submit(one);
  const TimePoint began = Clock::now();
  CHECK(!operations.wait(one, deadline_after(milliseconds(50))));
  CHECK(Clock::now() - began >= milliseconds(50));
  CHECK(Clock::now() - began < milliseconds(1000));
  CHECK(driver.calls == 1);  // the service has not come yet
  CHECK(operations.serve().kind == Kind::sleep);
  driver.permit(1);
  CHECK(operations.serve().kind == Kind::nothing);
  CHECK(operations.wait(one, TimePoint()));
}

TEST_CASE("operations: a deadline that passes in the queue is kept by whoever drives, and fails the rest") {
  for (const bool by_service : {false, true}) {
    CAPTURE(by_service);
    FakeDriver driver;
    Operations operations(driver);
    Queued first, hurried(milliseconds(60)), last;
    std::future<void> blocked;
    const TimePoint began = Clock::now();
    if (by_service) {
      operations.submit(first);
      CHECK(operations.serve().at == first.deadline);
    } else {
      blocked = std::async(std::launch::async, [&] { operations.run(first); });
      until([&] { return driver.sleepers == 1; });
    }
    std::future<void> also_blocked;
    if (by_service)
      operations.submit(hurried);
    else
      also_blocked = std::async(std::launch::async, [&] { operations.run(hurried); });
    std::this_thread::sleep_for(milliseconds(20));
    operations.submit(last);
    if (by_service) {
      CHECK(operations.serve().at == hurried.deadline);
      std::this_thread::sleep_until(hurried.deadline);
      until([&] { return operations.serve().kind == Kind::nothing; });
    } else {
      blocked.get();
      also_blocked.get();
      if (!last.ended) CHECK(operations.serve().kind == Kind::nothing);
    }
    CHECK(Clock::now() - began < milliseconds(1000));
    REQUIRE(hurried.ended);
    REQUIRE(last.ended);
    CHECK(hurried.error->code == ErrorCode::timeout);
    CHECK(first.error->code == ErrorCode::aborted);
    CHECK(last.error->code == ErrorCode::aborted);
  }
}

TEST_CASE("operations: a deadline of one that has ended is no reason to fail a later one") {
  FakeDriver driver;
  Operations operations(driver);
  Queued quick(milliseconds(30)), slow;
  operations.submit(quick);
  operations.submit(slow);
  driver.permit(1);
  CHECK(operations.serve().kind == Kind::sleep);
  std::this_thread::sleep_until(quick.deadline);
  until([&] { return operations.serve().at == slow.deadline; });
  driver.permit(1);
  CHECK(operations.serve().kind == Kind::nothing);
  CHECK(!quick.error);
  CHECK(!slow.error);
}

TEST_CASE("operations: close ends all, also what another thread drives") {
  FakeDriver driver;
  Operations operations(driver);
  std::array<Queued, 4> all;
  for (Queued& one : all) operations.submit(one);
  auto waiter = std::async(std::launch::async, [&] { operations.wait(all[1], TimePoint::max()); });
  until([&] { return driver.sleepers == 1; });
  driver.failed = true;
  driver.ring();
  operations.close();
  for (const Queued& one : all) {
    CHECK(one.ended);
    CHECK(one.error);
  }
  waiter.get();
  CHECK(operations.serve().kind == Kind::nothing);
}

TEST_CASE("operations: many threads at once, every one served in the order of its own calls") {
  FakeDriver driver;
  Operations operations(driver);
  constexpr int threads = 4, rounds = 2000;
  driver.permit(2 * threads * rounds);
  std::atomic<bool> over{false};
  std::thread service([&] {
    while (!over) {
      if (driver.calls > 0) operations.serve();
      std::this_thread::yield();
    }
  });
  std::vector<std::future<int>> callers;
  for (int t = 0; t < threads; t++) {
    callers.push_back(std::async(std::launch::async, [&] {
      int wrong = 0;
      for (int i = 0; i < rounds; i++) {
        Queued queued, blocking;
        operations.submit(queued);
        if (i % 3 != 0) operations.run(blocking);
        if (i % 3 != 0) wrong += !queued.ended || !blocking.ended;
        wrong += !operations.wait(queued, TimePoint::max());
      }
      return wrong;
    }));
  }
  for (auto& caller : callers) CHECK(caller.get() == 0);
  over = true;
  service.join();
  CHECK(driver.order.size() == size_t(threads * (rounds + rounds - (rounds + 2) / 3)));
}

}  // namespace rondo
