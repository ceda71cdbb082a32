// Leaving, announcing and the end of jobs, with ranks as threads.
#include <doctest/doctest.h>

#include <asio/post.hpp>
#include <new>

#include "fleet.hpp"

using namespace rondo;
using namespace rondo::test;

TEST_CASE("job: leaving is no failure, and a rank that left is named when it is needed") {
  auto seats = up(4);
  seats[2].job.reset();
  std::this_thread::sleep_for(milliseconds(100));
  for (const Rank rank : {0u, 1u, 3u}) {
    CHECK(seats[rank].handler->failures() == 0);
    seats[rank].job->connect(2, 0);
    const auto error = seats[rank].handler->link_error({2, 0}, milliseconds(2000));
    REQUIRE(error);
    CHECK(error->code == ErrorCode::peer_lost);
    CHECK(error->peer == 2u);
    CHECK(contains(error->message, "rank 2"));
  }
  // The others still reach each other, both ways.
  seats[3].job->connect(1, 0);
  check_talk(seats[1].handler->socket({3, 0}), seats[3].handler->socket({1, 0}), 'x');
  seats[0].job.reset();
  seats[1].job->connect(3, 1);
  check_talk(seats[1].handler->socket({3, 1}), seats[3].handler->socket({1, 1}), 'x');
  CHECK(seats[1].handler->failures() == 0);
  CHECK(seats[3].handler->failures() == 0);
}

TEST_CASE("job: what one rank announces reaches all others, once, with its name") {
  for (const Rank speaker : {0u, 2u}) {
    auto seats = up(4);
    seats[speaker].job->announce({ErrorCode::timeout, "the sum is late", Rank(3)});
    for (Rank rank = 0; rank < 4; ++rank) {
      if (rank == speaker) continue;
      const auto failure = seats[rank].handler->failure();
      REQUIRE(failure);
      CHECK(failure->code == ErrorCode::timeout);
      CHECK(failure->peer == 3u);
      CHECK(contains(failure->message, "rank " + std::to_string(speaker) + " (pid "));
      CHECK(contains(failure->message, "reported: the sum is late"));
    }
    seats[speaker].job.reset();
    std::this_thread::sleep_for(milliseconds(50));
    for (Rank rank = 0; rank < 4; ++rank) CHECK(seats[rank].handler->failures() == (rank == speaker ? 0 : 1));
  }
}

TEST_CASE("job: an announcement made just before the end still arrives") {
  auto seats = up(3);
  seats[1].job->announce({ErrorCode::aborted, "last words"});
  seats[1].job.reset();
  for (const Rank rank : {0u, 2u}) {
    const auto failure = seats[rank].handler->failure();
    REQUIRE(failure);
    CHECK(failure->peer == 1u);
    CHECK(contains(failure->message, "last words"));
  }
}

TEST_CASE("job: destruction is quick, also while connecting, and the handler is silent afterwards") {
  auto seats = up(3);
  for (uint16_t lane = 0; lane < 50; ++lane) {
    seats[0].job->connect(2, lane);
    seats[2].job->connect(1, lane);
  }
  const auto start = Clock::now();
  for (Seat& seat : seats) {
    seat.job.reset();
    seat.handler.reset();  // ASan would see a late call
  }
  CHECK(std::chrono::duration<double>(Clock::now() - start).count() < 1.0);
  std::this_thread::sleep_for(milliseconds(100));
}

TEST_CASE("job: two hundred jobs one after another at one address leave no descriptor behind") {
  const auto service = bootstrap::Service::instance();
  for (const std::string& root : {unix_root(), "127.0.0.1:" + std::to_string(free_port())}) {
    const auto cycle = [&](Seat& seat, Rank rank) {
      join(seat, options_for(rank, 2, root));
      if (!seat.job) return;
      seat.job->connect(1 - rank, 0);
      seat.handler->socket({1 - rank, 0});
      seat = Seat();
    };
    size_t before = 0;
    for (int i = 0; i < 200; ++i) {
      Seat zero, one;
      std::thread other([&] { cycle(one, 1); });
      cycle(zero, 0);
      other.join();
      if (zero.error) FAIL(zero.error->message);
      if (one.error) FAIL(one.error->message);
      if (i == 0) before = open_descriptors().size();
    }
    CHECK(open_descriptors().size() == before);
  }
}

TEST_CASE("job: each rank makes its jobs at its own pace") {
  // No barrier between the rounds: a quick rank joins the next job while a slow one still leaves the last.
  const std::string root = unix_root();
  constexpr uint32_t world = 4;
  std::vector<std::string> errors(world);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      for (int i = 0; i < 30 && errors[rank].empty(); ++i) {
        Seat seat;
        join(seat, options_for(rank, world, root));
        if (seat.error) errors[rank] = seat.error->message;
        if ((i + int(rank)) % 3 == 0) std::this_thread::sleep_for(milliseconds(3));
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) CHECK(error == "");
}

TEST_CASE("job: memory that runs out in a handler ends a join with an error, and not the process") {
  Seat seat;
  std::thread waiting([&] { join(seat, options_for(0, 2, unix_root())); });
  std::this_thread::sleep_for(milliseconds(100));
  const auto service = bootstrap::Service::instance();
  asio::post(service->context(), [] { throw std::bad_alloc(); });
  waiting.join();
  REQUIRE(seat.error);
  CHECK(seat.error->code == ErrorCode::system);
  CHECK(contains(seat.error->message, "rank 0 could not join: memory has run out"));
  CHECK(seat.took.count() < 1.0);
  // The thread goes on, and what it lost is nobody's business any more.
  up(2);
}
