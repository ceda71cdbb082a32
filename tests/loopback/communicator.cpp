// The public face, with ranks as threads: each has a communicator of its own, over real sockets.
#include "rondo/communicator.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "ranks.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST_CASE("communicator: every operation through the public face") {
  for (const uint32_t world : {1u, 2u, 5u}) {
    on_every_transport(world, [&](Communicator& comm) {
      const auto rank = comm.rank();
      CHECK(comm.world() == world);
      std::vector<float> x(11, float(rank + 1)), y(11);
      const float total = float(world * (world + 1)) / 2;
      CHECK(comm.all_reduce(std::span<const float>(x), std::span(y)).ok());
      CHECK(y == std::vector<float>(11, total));
      CHECK(comm.all_reduce(std::span(x), Reduction::avg).ok());
      CHECK(x == std::vector<float>(11, total / float(world)));

      const Extent own = comm.shard(11);
      std::vector<int64_t> numbers(11), part(own.count);
      std::iota(numbers.begin(), numbers.end(), 0);
      CHECK(comm.reduce_scatter(std::span(numbers), std::span(part)).ok());
      for (size_t i = 0; i < part.size(); i++) CHECK(part[i] == int64_t(world * (own.first + i)));
      std::vector<int64_t> gathered(11);
      CHECK(comm.all_gather(std::span(part), std::span(gathered)).ok());
      for (size_t i = 0; i < gathered.size(); i++) CHECK(gathered[i] == int64_t(world * i));

      std::vector<double> from_last(3, rank + 1 == world ? 7. : 0.);
      CHECK(comm.broadcast(std::span(from_last), world - 1).ok());
      CHECK(from_last == std::vector<double>(3, 7.));
      CHECK(comm.barrier().ok());
      CHECK(comm.all_reduce(std::span<float>()).ok());  // nothing at all is fine
      CHECK(comm.counters().operations == 7);
    });
  }
}

TEST_CASE("communicator: nothing at all, from and to nowhere, is an operation like any other") {
  for (const uint32_t world : {1u, 4u})
    on_every_transport(world, [&](Communicator& comm) {
      const auto type = DataType::bf16;
      const std::vector<size_t> none(world);
      const Rank next = (comm.rank() + 1) % world, previous = (comm.rank() + world - 1) % world;
      for (const Reduction reduction : {Reduction::sum, Reduction::weighted_avg}) {
        CHECK(comm.all_reduce(nullptr, nullptr, 0, type, reduction).ok());
        CHECK(comm.reduce_scatter(nullptr, nullptr, 0, type, reduction).ok());
        CHECK(comm.reduce_scatter_v(nullptr, nullptr, none, type, reduction).ok());
        CHECK(comm.reduce(nullptr, nullptr, 0, type, reduction, world - 1).ok());
        CHECK(comm.all_reduce_group({}, type, reduction).ok());
      }
      CHECK(comm.all_gather(nullptr, nullptr, 0, type).ok());
      CHECK(comm.all_gather_v(nullptr, nullptr, none, type).ok());
      CHECK(comm.broadcast(nullptr, 0, type, world - 1).ok());
      CHECK(comm.gather(nullptr, nullptr, 0, type, world - 1).ok());
      CHECK(comm.scatter(nullptr, nullptr, 0, type, world - 1).ok());
      CHECK(comm.all_to_all(nullptr, nullptr, 0, type).ok());
      CHECK(comm.all_to_all_v(nullptr, none, nullptr, none, type).ok());
      CHECK(comm.send_recv(nullptr, 0, next, nullptr, 0, previous, type).ok());
      CHECK(comm.counters().operations == 18);
      CHECK(comm.counters().payload_bytes_sent == 0);
      std::vector<float> four(4, 1);
      CHECK(comm.all_reduce(std::span(four)).ok());
      CHECK(four == std::vector<float>(4, float(world)));
    });
}

TEST_CASE("communicator: bad arguments are refused before anything is sent, and it works on") {
  on_every_transport(2, [](Communicator& comm) {
    std::vector<float> data(100, 1.f);
    const auto refused = [](const Result<void>& result, const char* text) {
      CHECK(!result.ok());
      if (result.ok()) return;
      CHECK(result.error().code == ErrorCode::invalid_argument);
      CHECK(result.error().message.find(text) != std::string::npos);
    };
    const std::span all(data);
    refused(comm.all_reduce(all.first(50), all.subspan(1, 50)), "overlap");
    refused(comm.all_reduce(all.first(50), all.subspan(50, 49)), "must have 50 elements, not 49");
    refused(comm.reduce_scatter(all.first(50), all.subspan(1, 25)), "overlap");
    refused(comm.reduce_scatter(all.first(50), all.subspan(50, 26)), "must have 25 elements, not 26");
    refused(comm.all_gather(all.subspan(1, 25), all.first(50)), "overlap");
    refused(comm.broadcast(all, 2), "no rank 2 in a world of 2");
    refused(comm.all_reduce(nullptr, data.data(), 1, DataType::f32, Reduction::sum), "null");
    refused(comm.all_reduce(data.data(), data.data(), 1, DataType(99), Reduction::sum), "no such type");
    refused(comm.all_reduce(data.data(), data.data(), SIZE_MAX, DataType::f64, Reduction::sum),
            "address space");
    for (const size_t numbers : {0, 1, 3}) {
      const std::vector<size_t> counts(numbers, 1);
      const std::string text = "must hold 2 numbers, one for each rank, not " + std::to_string(numbers);
      float* const out = data.data() + 50;
      const auto type = DataType::f32;
      refused(comm.all_gather_v(data.data(), out, counts, type), text.c_str());
      refused(comm.reduce_scatter_v(data.data(), out, counts, type, Reduction::sum), text.c_str());
      refused(comm.all_to_all_v(data.data(), counts, out, std::vector<size_t>{1, 1}, type), text.c_str());
      refused(comm.all_to_all_v(data.data(), std::vector<size_t>{1, 1}, out, counts, type), text.c_str());
      CHECK(!comm.async_all_gather_v(data.data(), out, counts, type).ok());
    }
    const Tensor tensor{data.data(), data.data(), 1};
    refused(comm.all_reduce_group(std::span(&tensor, 1), DataType(77)), "no such type (value 77)");
    CHECK(comm.counters().operations == 0);
    // In place: the shard at its place in the whole.
    const Extent own = comm.shard(100);
    CHECK(comm.reduce_scatter(all, all.subspan(own.first, own.count)).ok());
    CHECK(comm.all_gather(all.subspan(own.first, own.count), all).ok());
    CHECK(data == std::vector<float>(100, 2.f));
  });
}

TEST_CASE("communicator: one that was moved from says so") {
  on_every_transport(1, [](Communicator& comm) {
    Communicator other(std::move(comm));
    CHECK(other.barrier().ok());
    const auto result = comm.barrier();
    REQUIRE(!result.ok());
    CHECK(result.error().code == ErrorCode::invalid_argument);
    comm.abort();
    CHECK(comm.world() == 0);
    comm = std::move(other);
    CHECK(comm.barrier().ok());
  });
}

TEST_CASE("communicator: a rank that leaves in the middle is named by every other rank") {
  for (const Rank leaver : {0u, 2u}) {
    std::atomic<int> named{0};  // rank 0 carries the control plane: without it only a neighbour can tell
    on_every_transport(5, [&](Communicator& comm) {
      std::vector<float> data(1 << 18, 1.f);
      CHECK(comm.all_reduce(std::span(data)).ok());
      if (comm.rank() == leaver) return;
      const auto began = Clock::now();
      const auto result = comm.all_reduce(std::span(data));
      CHECK(!result.ok());
      if (result.ok()) return;
      CHECK(since(began) < milliseconds(2000));
      CHECK(result.error().code == ErrorCode::peer_lost);
      if (result.error().peer == leaver) named++;
      const auto next = comm.all_reduce(std::span(data));
      CHECK(!next.ok());
      if (next.ok()) return;
      CHECK(next.error().code == ErrorCode::aborted);
    });
    CHECK(named >= 2 * (leaver == 0 ? 1 : 4));
  }
}

TEST_CASE("communicator: a mismatch fails every rank that waits, within a second") {
  on_every_transport(4, [&](Communicator& comm) {
    std::vector<float> data(100'000, 1.f);
    const size_t count = comm.rank() == 2 ? 99'999 : 100'000;
    const auto began = Clock::now();
    const auto result = comm.all_reduce(std::span(data).first(count));
    CHECK(!result.ok());
    if (result.ok()) return;
    CHECK(result.error().code == ErrorCode::mismatch);
    CHECK(since(began) < milliseconds(1000));
  });
}

TEST_CASE("communicator: a mismatch of calls that are much alike names what tells them apart") {
  struct Pair {
    const char *name, *other;  // as the ranks' calls are told apart
    Result<void> (*call)(Communicator&, std::span<const float>, std::span<float>, bool odd);
  };
  using In = std::span<const float>;
  using Out = std::span<float>;
  static constexpr std::array<size_t, 2> counts{5, 5};
  const std::array pairs{
      Pair{"reduce_scatter", "reduce_scatter_v",
           [](Communicator& comm, In in, Out out, bool odd) {
             return odd ? comm.reduce_scatter_v(in, out.first(5), counts)
                        : comm.reduce_scatter(in, out.first(5));
           }},
      Pair{"all_gather", "all_gather_v",
           [](Communicator& comm, In in, Out out, bool odd) {
             return odd ? comm.all_gather_v(in.first(5), out, counts) : comm.all_gather(in.first(5), out);
           }},
      Pair{"all_to_all", "all_to_all_v",
           [](Communicator& comm, In in, Out out, bool odd) {
             return odd ? comm.all_to_all_v(in, counts, out, counts) : comm.all_to_all(in, out);
           }},
      Pair{"none", "1", [](Communicator& comm, In in, Out out, bool odd) {
             const std::array tensors{Tensor{in.data(), out.data(), in.size()}};
             return odd ? comm.all_reduce_group(tensors, DataType::f32) : comm.all_reduce(in, out);
           }}};
  for (const Pair& pair : pairs)
    on_every_transport(2, [&](Communicator& comm) {
      std::vector<float> in(10, 1.f), out(10);
      const auto result = pair.call(comm, in, out, comm.rank() == 1);
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().code == ErrorCode::mismatch);
      const std::string what = pair.name == std::string("none") ? "vectors of the group" : "operation";
      const std::string odd = pair.other, even = pair.name;
      const auto says = [&](const std::string& text) {
        return result.error().message.find(what + ": " + text) != std::string::npos;
      };
      CHECK_MESSAGE((says(even + " against " + odd) || says(odd + " against " + even) ||
                     says(even + " here, " + odd + " there") || says(odd + " here, " + even + " there")),
                    result.error().message);
    });
}

TEST_CASE(
    "communicator: abort from another thread ends the call on every rank, more than once does no harm") {
  on_every_transport(3, [&](Communicator& comm) {
    std::thread other;
    if (comm.rank() == 1) {
      other = std::thread([&] {
        std::this_thread::sleep_for(milliseconds(100));
        comm.abort();
        comm.abort();
      });
    }
    // Rank 2 comes when all is over, so that ranks 0 and 1 wait.
    if (comm.rank() == 2) std::this_thread::sleep_for(milliseconds(600));
    const auto began = Clock::now();
    const auto result = comm.barrier();
    CHECK(!result.ok());
    if (!result.ok()) {
      CHECK(result.error().code == ErrorCode::aborted);
      CHECK(result.error().peer == 1u);
    }
    CHECK(since(began) < milliseconds(1100));
    if (other.joinable()) other.join();
  });
}

TEST_CASE("communicator: the call's deadline wins over the communicator's, and names whom it waits for") {
  on_every_transport(2, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(900));
      return;
    }
    const auto began = Clock::now();
    const auto result = comm.barrier({.timeout = milliseconds(300)});
    CHECK(!result.ok());
    if (result.ok()) return;
    CHECK(result.error().code == ErrorCode::timeout);
    CHECK(result.error().peer == 1u);
    CHECK(since(began) >= milliseconds(300));
    CHECK(since(began) < milliseconds(800));
  });
}

TEST_CASE("communicator: a call whose turn does not come in time fails the communicator, not later results") {
  on_every_transport(2, [&](Communicator& comm) {
    if (comm.rank() == 1) std::this_thread::sleep_for(milliseconds(500));
    std::thread second;
    if (comm.rank() == 0) {
      second = std::thread([&] {
        std::this_thread::sleep_for(milliseconds(50));
        const auto late = comm.barrier({.timeout = milliseconds(50)});
        CHECK(!late.ok());
        if (late.ok()) return;
        CHECK(late.error().code == ErrorCode::timeout);
        CHECK(late.error().peer == 1u);  // whom the one before waits for
        CHECK(late.error().message.find("operation #1 (all_reduce of 4 f32, sum)") != std::string::npos);
      });
    }
    std::vector<float> data(4, 1.f);
    const auto failed = comm.all_reduce(std::span(data));
    CHECK(!failed.ok());
    if (second.joinable()) second.join();
    if (comm.rank() == 1 && !failed.ok())
      CHECK(failed.error().message.find("rank 1 of 2, before its call (all_reduce of 4 f32, sum): ") == 0);
    CHECK(!comm.all_reduce(std::span(data)).ok());
  });
}

TEST_CASE("communicator: several at once, from several threads, in any order") {
  constexpr int communicators = 3, rounds = 50;
  std::vector<std::thread> threads;
  for (int c = 0; c < communicators; c++) {
    threads.emplace_back([] {
      on_every_transport(2, [](Communicator& comm) {
        std::vector<std::thread> callers;
        std::atomic<int> wrong{0};
        for (int t = 0; t < 2; t++) {
          callers.emplace_back([&] {
            for (int i = 0; i < rounds; i++) {
              std::vector<int32_t> data(100, 1);
              wrong += !comm.all_reduce(std::span(data)).ok() || data != std::vector<int32_t>(100, 2);
            }
          });
        }
        for (auto& caller : callers) caller.join();
        CHECK(wrong == 0);
      });
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_CASE("communicator: four of them used by four threads, each in an order of its own") {
  on_every_transport(2, [](Communicator& comm) {
    std::vector<Communicator> all;
    for (int i = 0; i < 4; i++) all.push_back(*comm.duplicate());
    std::atomic<int> wrong{0};
    const auto caller = [&](unsigned seed) {
      std::vector<size_t> order(1000);
      for (size_t i = 0; i < order.size(); i++) order[i] = i % 4;
      std::shuffle(order.begin(), order.end(), std::mt19937(seed));
      for (size_t first = 0; first < order.size(); first += 50) {
        std::vector<std::vector<int32_t>> data(50, std::vector<int32_t>(100, 1));
        std::vector<Work> works;
        for (size_t i = 0; i < 50; i++)
          works.push_back(*all[order[first + i]].async_all_reduce(std::span(data[i])));
        for (Work& work : works) wrong += !work.wait().ok();
        for (const auto& vector : data) wrong += vector != std::vector<int32_t>(100, 2);
      }
    };
    std::vector<std::thread> callers;
    for (unsigned t = 0; t < 4; t++) callers.emplace_back(caller, 4 * comm.rank() + t);
    for (auto& thread : callers) thread.join();
    CHECK(wrong == 0);
  });
}

TEST_CASE("communicator: 100 times made, used and destroyed leaves descriptors and threads as they were") {
  const auto cycle = [] {
    on_every_transport(3, [](Communicator& comm) {
      std::vector<float> data(1000, 1.f);
      CHECK(comm.all_reduce(std::span(data)).ok());
    });
  };
  cycle();
  const size_t descriptors = entries("/proc/self/fd"), tasks = entries("/proc/self/task");
  for (int i = 0; i < 100; i++) cycle();
  CHECK(entries("/proc/self/fd") == descriptors);
  CHECK(entries("/proc/self/task") == tasks);
}
