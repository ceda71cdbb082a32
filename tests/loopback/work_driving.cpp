// Asynchronous operations: which thread drives them, and what else goes on meanwhile.
#include <asio/post.hpp>
#include <atomic>
#include <future>
#include <numeric>

#include "base/clock.hpp"
#include "bootstrap/service.hpp"
#include "work.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::milliseconds;

TEST_CASE("work: one stuck communicator delays neither another one nor the service thread") {
  Gate gate;
  std::thread stuck([&] {
    on_ranks(2, [&](Communicator& comm) {
      if (comm.rank() == 1) gate.pass();
      std::vector<float> data(100, 1.f);
      Work work = begun(comm.async_all_reduce(std::span(data)));
      CHECK(work.wait().ok());
    });
  });
  on_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 0) std::this_thread::sleep_for(milliseconds(50));  // the other is stuck by now
    for (int i = 0; i < 200; i++) {
      std::vector<int32_t> data(100, i);
      Work work = begun(comm.async_all_reduce(std::span(data)));
      const bool ended = eventually([&] { return work.test(); });
      CHECK(ended);
      CHECK(data == std::vector<int32_t>(100, 2 * i));
    }
    const auto service = bootstrap::Service::instance();
    std::promise<void> answered;
    asio::post(service->context(), [&] { answered.set_value(); });
    CHECK(answered.get_future().wait_for(milliseconds(500)) == std::future_status::ready);
  });
  // New jobs are joined meanwhile, and their failures told.
  on_ranks(3, [](Communicator& comm) {
    if (comm.rank() == 1) return comm.abort();
    const auto began = Clock::now();
    CHECK(!comm.barrier().ok());
    CHECK(since(began) < milliseconds(1000));
  });
  gate.open();
  stuck.join();
}

TEST_CASE("work: who waits drives all that is queued, though the service thread is held up") {
  std::atomic<int> finished{0}, held{0};
  const auto service = bootstrap::Service::instance();
  on_ranks(2, [&](Communicator& comm) {
    CHECK(comm.barrier().ok());  // the links are there
    if (comm.rank() == 0)
      asio::post(service->context(), [&] {
        held = 1;
        for (const auto began = Clock::now(); finished < 2 && since(began) < milliseconds(5000);)
          std::this_thread::sleep_for(milliseconds(1));
        held = finished == 2 ? 2 : 3;
      });
    CHECK(eventually([&] { return held > 0; }));
    std::vector<int32_t> first(1 << 16, 1), second(1 << 16, 2), third(1 << 16, 3);
    Work one = begun(comm.async_all_reduce(std::span(first)));
    Work two = begun(comm.async_all_reduce(std::span(second)));
    CHECK(comm.all_reduce(std::span(third)).ok());
    CHECK(one.test());
    CHECK(two.test());
    CHECK(second == std::vector<int32_t>(1 << 16, 4));
    Work four = begun(comm.async_barrier());
    CHECK(four.wait(milliseconds(4000)).ok());
    finished++;
    CHECK(eventually([&] { return held > 1; }));
  });
  CHECK(held == 2);
}

TEST_CASE("work: while the service thread drives large vectors it still answers") {
  on_ranks(2, [](Communicator& comm) {
    std::vector<float> data(16 << 20, 1.f);
    const auto service = bootstrap::Service::instance();
    Work work = begun(comm.async_all_reduce(std::span(data)));
    int answers = 0;
    do {
      std::promise<void> answered;
      asio::post(service->context(), [&] { answered.set_value(); });
      const auto began = Clock::now();
      answered.get_future().wait();
      CHECK(since(began) < milliseconds(1000));
      answers++;
    } while (!work.test());
    CHECK(answers > 1);
    CHECK(data == std::vector<float>(16 << 20, 2.f));
  });
}

TEST_CASE("work: several threads mix blocking and asynchronous calls on one communicator") {
  on_ranks(2, [](Communicator& comm) {
    // All calls are alike, so any order fits; a sum of ones tells whether each was made once.
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; t++) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 100; i++) {
          std::vector<int32_t> data(100, 1), other(100, 1);
          auto work = comm.async_all_reduce(std::span(data));
          if (t > 0) wrong += !comm.all_reduce(std::span(other)).ok();
          if (t == 0) wrong += !comm.async_all_reduce(std::span(other))->wait().ok();
          wrong += !work->wait().ok();
          wrong += data != std::vector<int32_t>(100, 2) || other != data;
          (void)comm.counters();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(comm.counters().operations == 600);
  });
}

TEST_CASE("work: counters can be read while a call waits") {
  Gate gate;
  on_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 1) gate.pass();
    std::thread reader;
    if (comm.rank() == 0)
      reader = std::thread([&] {
        std::this_thread::sleep_for(milliseconds(50));
        const auto began = Clock::now();
        CHECK(comm.counters().operations <= 1);
        CHECK(since(began) < milliseconds(500));
        gate.open();
      });
    CHECK(comm.barrier().ok());
    if (reader.joinable()) reader.join();
  });
}
