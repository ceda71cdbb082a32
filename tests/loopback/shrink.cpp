// Communicators of the ranks that are left, among threads: a rank that is gone has destroyed its communicator.
#include <algorithm>

#include "../text.hpp"
#include "ranks.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr CallOptions patient{milliseconds(8000)}, hasty{milliseconds(400)};

// Whether the new communicator has these ranks of the old one, and adds up.
void check_successor(Result<Communicator>& made, Rank old_rank, const std::vector<Rank>& expected) {
  REQUIRE_MESSAGE(made.ok(), (made ? "" : made.error().message));
  CHECK(made->parent_ranks() == expected);
  CHECK(made->world() == expected.size());
  CHECK(expected[made->rank()] == old_rank);
  std::vector<uint32_t> all(made->world()), own{old_rank};
  CHECK(made->all_gather(std::span(own), std::span(all)).ok());
  CHECK(all == expected);
}

}  // namespace

TEST_CASE("shrink: with nobody lost it is a duplicate, once; the old one still works") {
  on_every_transport(3, [](Communicator& comm) {
    auto made = comm.shrink(patient);
    check_successor(made, comm.rank(), {0, 1, 2});
    CHECK(made->transport() == comm.transport());
    CHECK(comm.barrier().ok());
    const auto again = comm.shrink(patient);
    REQUIRE(!again.ok());
    CHECK(again.error().code == ErrorCode::invalid_argument);
    auto third = made->shrink(patient);
    check_successor(third, comm.rank(), {0, 1, 2});
  });
  on_ranks(1, [](Communicator& comm) {
    auto made = comm.shrink();
    check_successor(made, 0, {0});
  });
}

TEST_CASE("shrink: after an abort, a mismatch and a time-out, with work queued, all ranks go on") {
  for (const std::string how : {"abort", "mismatch", "timeout"}) {
    CAPTURE(how);
    on_every_transport(4, [&](Communicator& comm) {
      const Rank rank = comm.rank();
      std::vector<int32_t> data(1000, 1), more(1000, 1);
      CHECK(comm.all_reduce(std::span(data)).ok());
      if (how == "abort" && rank == 2) comm.abort();
      const bool absent = how == "timeout" && rank == 1;
      if (!absent) {
        const size_t count = how == "mismatch" && rank == 3 ? 999 : 1000;
        auto queued = comm.async_all_reduce(std::span(data).first(count), Reduction::sum,
                                            how == "timeout" ? hasty : patient);
        auto behind = comm.async_all_reduce(std::span(more));
        CHECK(!queued->wait().ok());
        CHECK(!behind->wait().ok());
      }
      const auto began = Clock::now();
      auto made = comm.shrink(patient);
      check_successor(made, rank, {0, 1, 2, 3});
      CHECK(since(began) < milliseconds(2000));
    });
  }
}

TEST_CASE("shrink: whoever has gone is left out, rank 0 too, and several; a rank may be left alone") {
  const std::vector<std::vector<Rank>> cases{{0}, {2}, {3}, {0, 1}, {1, 3}, {0, 1, 3}};
  for (const auto& gone : cases) {
    std::vector<Rank> left;
    for (Rank rank = 0; rank < 4; rank++)
      if (std::ranges::find(gone, rank) == gone.end()) left.push_back(rank);
    on_every_transport(4, [&](Communicator& comm) {
      CHECK(comm.barrier().ok());
      const Rank rank = comm.rank();
      if (std::ranges::find(left, rank) == left.end()) return;
      const auto began = Clock::now();
      auto made = comm.shrink(patient);
      CHECK(since(began) < milliseconds(2000));
      check_successor(made, rank, left);
    });
  }
}

TEST_CASE("shrink: rank after rank goes, each time the others shrink what they have") {
  on_every_transport(4, [](Communicator& comm) {
    std::optional<Communicator> now(std::move(comm));
    for (const uint32_t world : {3u, 2u, 1u}) {
      CHECK(now->barrier().ok());
      if (now->rank() == 0) return;
      auto made = now->shrink(patient);
      REQUIRE_MESSAGE(made.ok(), (made ? "" : made.error().message));
      CHECK(made->world() == world);
      now.emplace(std::move(*made));
    }
  });
}

TEST_CASE("shrink: a rank that does not call it is named at the deadline, and may do it later") {
  for (const Rank late : {0u, 2u}) {
    CAPTURE(late);
    std::atomic<int> timed_out{0};
    on_ranks(3, [&](Communicator& comm) {
      if (comm.rank() == late) {
        while (timed_out < 2) std::this_thread::sleep_for(milliseconds(1));
      } else {
        const auto began = Clock::now();
        const auto made = comm.shrink(hasty);
        CHECK(since(began) >= milliseconds(400));
        CHECK(since(began) < milliseconds(900));
        REQUIRE(!made.ok());
        CHECK(made.error().code == ErrorCode::timeout);
        CHECK(made.error().peer == late);
        CHECK_MESSAGE(has(made.error().message, fmt::format("rank {} of 3", late)), made.error().message);
        ++timed_out;
      }
      auto made = comm.shrink(patient);
      check_successor(made, comm.rank(), {0, 1, 2});
    });
  }
}

TEST_CASE("shrink: the ranks come at different times, and one goes while the others wait") {
  on_ranks(4, [](Communicator& comm) {
    const Rank rank = comm.rank();
    CHECK(comm.barrier().ok());
    std::this_thread::sleep_for(milliseconds(100 * ((rank + 2) % 4)));
    if (rank == 1) return;
    auto made = comm.shrink(patient);
    check_successor(made, rank, {0, 2, 3});
  });
}

TEST_CASE("shrink: descriptors and threads are as before, after many") {
  const auto once = [] {
    on_every_transport(3, [](Communicator& comm) {
      CHECK(comm.barrier().ok());
      if (comm.rank() == 0) return;
      auto made = comm.shrink(patient);
      check_successor(made, comm.rank(), {1, 2});
    });
  };
  once();
  const size_t descriptors = entries("/proc/self/fd"), tasks = entries("/proc/self/task");
  for (int i = 0; i < 20; i++) once();
  CHECK(entries("/proc/self/fd") == descriptors);
  CHECK(entries("/proc/self/task") == tasks);
}

TEST_CASE("shrink: a long line of successors keeps no more descriptors than a short one") {
  for (const uint32_t world : {2u, 3u}) {
    on_every_transport(world, [](Communicator& comm) {
      std::optional<Communicator> now(std::move(comm));
      size_t early = 0;
      for (int i = 1; i <= 100; i++) {
        if (i % 2 == 0 && now->rank() == i % now->world()) now->abort();
        auto made = now->shrink(patient);
        REQUIRE_MESSAGE(made.ok(), (made ? "" : made.error().message));
        now.emplace(std::move(*made));
        CHECK(now->barrier().ok());
        const size_t descriptors = entries("/proc/self/fd");
        CHECK(now->barrier().ok());
        if (i == 10) early = descriptors;
        if (i > 10) CHECK(descriptors < early + 20);  // some are just being closed
      }
    });
  }
}
