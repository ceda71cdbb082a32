// Asynchronous operations: order, waiting, the service thread's part, and what a failure does to those that
// are queued.
#include "rondo/work.hpp"

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

TEST_CASE("work: every operation, typed and untyped, gives what the blocking one gives") {
  for (const uint32_t world : {1u, 3u}) {
    on_ranks(world, [&](Communicator& comm) {
      const auto rank = comm.rank();
      std::vector<float> x(11, float(rank + 1)), y(11), z(11, float(rank));
      std::vector<Work> works;
      works.push_back(begun(comm.async_all_reduce(std::span<const float>(x), std::span(y))));
      works.push_back(begun(comm.async_all_reduce(std::span(z), Reduction::max)));
      const Extent own = comm.shard(11);
      std::vector<int64_t> numbers(11), part(own.count), gathered(11);
      std::iota(numbers.begin(), numbers.end(), 0);
      works.push_back(begun(comm.async_reduce_scatter(std::span(numbers), std::span(part))));
      works.push_back(begun(comm.async_all_gather(std::span(part), std::span(gathered))));  // in order
      std::vector<double> from_last(3, rank + 1 == world ? 7. : 0.);
      works.push_back(begun(comm.async_broadcast(std::span(from_last), world - 1)));
      works.push_back(begun(comm.async_barrier()));
      for (Work& work : works) CHECK(work.wait().ok());
      CHECK(y == std::vector<float>(11, float(world * (world + 1)) / 2));
      CHECK(z == std::vector<float>(11, float(world - 1)));
      for (size_t i = 0; i < gathered.size(); i++) CHECK(gathered[i] == int64_t(world * i));
      CHECK(from_last == std::vector<double>(3, 7.));
      for (Work& work : works) {
        CHECK(work.test());
        CHECK(!work.error());
        CHECK(work.wait().ok());  // again
      }
      CHECK(comm.counters().operations == 6);
    });
  }
}

TEST_CASE("work: bad arguments are errors of the call, the same as of the blocking one") {
  on_ranks(2, [](Communicator& comm) {
    std::vector<float> data(100, 1.f);
    const std::span all(data);
    const auto same = [](const Result<Work>& work, const Result<void>& blocking) {
      REQUIRE(!work.ok());
      REQUIRE(!blocking.ok());
      CHECK(work.error().code == ErrorCode::invalid_argument);
      CHECK(work.error().message == blocking.error().message);
    };
    same(comm.async_all_reduce(all.first(50), all.subspan(1, 50)),
         comm.all_reduce(all.first(50), all.subspan(1, 50)));
    same(comm.async_all_reduce(all.first(50), all.subspan(50, 49)),
         comm.all_reduce(all.first(50), all.subspan(50, 49)));
    same(comm.async_reduce_scatter(all.first(50), all.subspan(50, 26)),
         comm.reduce_scatter(all.first(50), all.subspan(50, 26)));
    same(comm.async_all_gather(all.subspan(1, 25), all.first(50)),
         comm.all_gather(all.subspan(1, 25), all.first(50)));
    same(comm.async_broadcast(all, 2), comm.broadcast(all, 2));
    Communicator other(std::move(comm));
    same(comm.async_barrier(), comm.barrier());
    CHECK(other.counters().operations == 0);
    CHECK(begun(other.async_barrier()).wait().ok());
  });
}

TEST_CASE("work: nobody waits, and the service thread ends it; blocking calls come in their turn") {
  on_ranks(3, [](Communicator& comm) {
    std::vector<int64_t> data(1000, comm.rank() + 1);
    Work first = begun(comm.async_all_reduce(std::span(data)));
    CHECK(eventually([&] { return first.test(); }));
    CHECK(data == std::vector<int64_t>(1000, 6));
    // 6 -> 18 -> 54 -> 162, each from the result before
    Work second = begun(comm.async_all_reduce(std::span(data)));
    CHECK(comm.all_reduce(std::span(data)).ok());
    CHECK(second.test());
    CHECK(data == std::vector<int64_t>(1000, 54));
    Work third = begun(comm.async_all_reduce(std::span(data)));
    CHECK(third.wait(milliseconds(5000)).ok());
    CHECK(data == std::vector<int64_t>(1000, 162));
  });
}

TEST_CASE("work: 100 in flight on each rank, of all sizes, waited for in any order") {
  on_ranks(3, [](Communicator& comm) {
    constexpr size_t many = 100;
    std::vector<std::vector<int32_t>> data;
    std::vector<Work> works;
    for (size_t i = 0; i < many; i++) data.emplace_back(i * i * 7, int32_t(i * (comm.rank() + 1)));
    for (auto& vector : data) works.push_back(begun(comm.async_all_reduce(std::span(vector))));
    // 37 and 100 have no common divisor, so this is every one of them, each rank from another one on.
    for (size_t i = 0; i < many; i++) CHECK(works[(i * 37 + comm.rank() * 11) % many].wait().ok());
    for (size_t i = 0; i < many; i++) CHECK(data[i] == std::vector<int32_t>(i * i * 7, int32_t(i * 6)));
  });
}

TEST_CASE("work: a wait that times out is no error of the operation, which goes on") {
  Gate gate;
  on_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 1) gate.pass();
    std::vector<float> data(10, 1.f);
    Work work = begun(comm.async_all_reduce(std::span(data)));
    if (comm.rank() == 0) {
      for (int i = 0; i < 3; i++) {
        const auto began = Clock::now();
        const auto result = work.wait(milliseconds(60));
        CHECK(since(began) >= milliseconds(60));
        CHECK(since(began) < milliseconds(600));
        REQUIRE(!result.ok());
        CHECK(result.error().code == ErrorCode::timeout);
        CHECK(result.error().message.find("goes on") != std::string::npos);
        CHECK(!work.test());
        CHECK(!work.error());
      }
      gate.open();
    }
    CHECK(work.wait().ok());
    CHECK(data == std::vector<float>(10, 2.f));
    CHECK(comm.barrier().ok());
  });
}

TEST_CASE("work: its own deadline ends it, driven by the service thread or by who waits") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    Gate gate;
    on_ranks(2, [&](Communicator& comm) {
      if (comm.rank() == 1) return gate.pass();
      const auto began = Clock::now();
      Work late = begun(comm.async_barrier({.timeout = milliseconds(200)}));
      Work queued = begun(comm.async_barrier());
      if (waits) CHECK(!late.wait().ok());
      CHECK(eventually([&] { return late.test() && queued.test(); }));
      CHECK(since(began) >= milliseconds(200));
      CHECK(since(began) < milliseconds(1000));
      gate.open();
      REQUIRE(late.error());
      REQUIRE(queued.error());
      CHECK(late.error()->code == ErrorCode::timeout);
      CHECK(late.error()->peer == 1u);
      CHECK(queued.error()->code == ErrorCode::aborted);
      const auto next = comm.barrier();
      REQUIRE(!next.ok());
      CHECK(next.error().code == ErrorCode::aborted);
    });
  }
}

TEST_CASE("work: a deadline that passes in the queue fails the communicator in time") {
  Gate gate;
  on_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 1) return gate.pass();
    const auto began = Clock::now();
    Work first = begun(comm.async_barrier());
    Work hurried = begun(comm.async_barrier({.timeout = milliseconds(100)}));
    CHECK(eventually([&] { return first.test() && hurried.test(); }));
    CHECK(since(began) < milliseconds(1000));
    gate.open();
    CHECK(hurried.error()->code == ErrorCode::timeout);
    CHECK(hurried.error()->message.find("earlier operations") != std::string::npos);
    CHECK(first.error());
  });
}

TEST_CASE("work: abort ends what runs and what is queued, waited for or not, within a second") {
  on_ranks(2, [](Communicator& comm) {
    std::vector<std::vector<float>> data(20, std::vector<float>(1000, 1.f));
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(200));
      comm.abort();
      return;
    }
    std::vector<Work> works;
    for (auto& vector : data) works.push_back(begun(comm.async_all_reduce(std::span(vector))));
    auto waiter = std::async(std::launch::async, [&] { return works[10].wait(); });
    const auto began = Clock::now();
    CHECK(eventually([&] { return works.back().test(); }));
    CHECK(since(began) < milliseconds(1200));
    CHECK(!waiter.get().ok());
    for (Work& work : works) {
      REQUIRE(work.error());
      CHECK(work.error()->code == ErrorCode::aborted);
      CHECK(work.error()->peer == 1u);
    }
  });
}

TEST_CASE("work: a peer that goes away is named by what runs; what is queued is aborted") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    on_ranks(3, [&](Communicator& comm) {
      std::vector<std::vector<float>> data(5, std::vector<float>(1 << 16, 1.f));
      CHECK(comm.barrier().ok());
      if (comm.rank() == 2) return;
      const auto began = Clock::now();
      std::vector<Work> works;
      for (auto& vector : data) works.push_back(begun(comm.async_all_reduce(std::span(vector))));
      if (waits) CHECK(!works.back().wait().ok());
      CHECK(eventually([&] { return works.back().test(); }));
      CHECK(since(began) < milliseconds(2000));
      CHECK(works[0].error()->code == ErrorCode::peer_lost);
      CHECK(works[0].error()->peer == 2u);
      for (size_t i = 1; i < works.size(); i++) CHECK(works[i].error()->code == ErrorCode::aborted);
    });
  }
}

TEST_CASE("work: the end of the communicator ends what is pending, and the outcome outlives it") {
  Gate gate;
  on_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 1) return gate.pass();
    std::vector<float> data(1000, 1.f);
    std::vector<Work> works;
    {
      Communicator mine = std::move(comm);
      for (int i = 0; i < 3; i++) works.push_back(begun(mine.async_all_reduce(std::span(data))));
      auto waiter = std::async(std::launch::async, [&] { return works[1].wait(); });
      std::this_thread::sleep_for(milliseconds(50));
      const auto began = Clock::now();
      { const Communicator gone = std::move(mine); }
      CHECK(since(began) < milliseconds(1000));
      CHECK(waiter.get().error().code == ErrorCode::aborted);
    }
    gate.open();
    for (Work& work : works) {
      CHECK(work.test());
      REQUIRE(!work.wait().ok());
      CHECK(work.wait().error().code == ErrorCode::aborted);
    }
  });
}

TEST_CASE("work: it can be moved, over another one too; destruction waits for the operation") {
  on_ranks(2, [](Communicator& comm) {
    if (comm.rank() == 1) std::this_thread::sleep_for(milliseconds(200));
    std::vector<float> data(10, 1.f), more(10, 1.f);
    Work work = begun(comm.async_all_reduce(std::span(data)));
    Communicator moved = std::move(comm);  // the Work does not notice
    work = begun(moved.async_all_reduce(std::span(more)));
    CHECK(data == std::vector<float>(10, 2.f));
    Work other = std::move(work);
    CHECK(work.test());
    REQUIRE(!work.wait().ok());
    CHECK(work.wait().error().code == ErrorCode::invalid_argument);
    CHECK(other.wait().ok());
    CHECK(more == std::vector<float>(10, 2.f));
    { const Work dropped = begun(moved.async_all_reduce(std::span(more))); }
    CHECK(more == std::vector<float>(10, 4.f));
  });
}
