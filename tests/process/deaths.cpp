// Ranks that die, stop, come late or never: what every other rank is told, and when.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <map>
#include <memory>
#include <tuple>

#include "../sanitized.hpp"
#include "../skip.hpp"
#include "base/random.hpp"
#include "check_lost.hpp"
#include "workers.hpp"

using namespace rondo::test;

namespace {

constexpr double slack = 0.5;

// Of every survivor: what it was told of the victim, how soon after `since`, and that it ended in order.
void check_told(const std::vector<Ended>& ended, uint32_t victim, double since, double within) {
  for (uint32_t rank = 0; rank < ended.size(); rank++) {
    if (rank == victim) continue;
    CAPTURE(rank);
    CAPTURE(ended[rank].out);
    CAPTURE(ended[rank].err);
    CHECK(ended[rank].code == 3);
    const auto told = report(ended[rank], "error");
    REQUIRE(told);
    CHECK(told->code == "peer_lost");
    CHECK(told->peer == int(victim));
    CHECK(has(told->text, fmt::format("rank {} (pid ", victim)));
    CHECK(has(told->text, "all_reduce"));
    CHECK(told->at - since < within);
    CHECK(number_after(ended[rank], "destroyed") >= 0);
    CHECK(number_after(ended[rank], "destroyed") < 1);
  }
}

#define CAPTURE_SITUATION(situation) \
  CAPTURE((situation).transport);    \
  CAPTURE((situation).world);        \
  CAPTURE((situation).victim)

Workers::Job job_of(const Situation& at, const std::string& mode, size_t count) {
  return {at.world, at.transport, {mode, std::to_string(at.victim), std::to_string(count)}};
}

}  // namespace

TEST_CASE("deaths: SIGKILL is told to every other rank by name, whose calls and ends are quick after that") {
  auto all = situations();
  all.push_back({"tcp", 4, 0});
  all.push_back({"shm", 4, 0});
  for (const Situation& at : all) {
    CAPTURE_SITUATION(at);
    Workers workers(job_of(at, "loop", 100'000));
    REQUIRE(workers.all_say("runs"));
    const double since = seconds_now();
    ::kill(workers[at.victim].pid(), SIGKILL);
    const auto ended = workers.wait();
    CHECK(ended[at.victim].code == 128 + SIGKILL);
    check_told(ended, at.victim, since, 2);
  }
}

TEST_CASE("deaths: SIGKILL under TLS, on control and data connections, is told as quickly") {
  for (const auto& [world, victim, count] :
       {std::tuple(2u, 1u, 4'000'000), {4u, 2u, 100'000}, {4u, 0u, 100'000}}) {
    const Situation at{"tcp", world, victim};
    CAPTURE_SITUATION(at);
    auto job = job_of(at, "loop", size_t(count));
    const auto port = 15000 + rondo::random_number() % 15000;
    job.environment = {"RONDO_TLS=1", fmt::format("RONDO_ROOT=127.0.0.1:{}", port)};
    Workers workers(job);
    REQUIRE(workers.all_say("runs"));
    const double since = seconds_now();
    ::kill(workers[victim].pid(), SIGKILL);
    check_told(workers.wait(), victim, since, 2);
  }
}

TEST_CASE("deaths: exit in the middle of an all-reduce of 64 MiB") {
  for (const Situation& at : situations()) {
    CAPTURE_SITUATION(at);
    auto job = job_of(at, "exit", 16 << 20);
    // So that it is in the middle.
    job.environment = {fmt::format("RONDO_FAULT=stall@rank={},operation=2,after=4000000", at.victim)};
    Workers workers(job);
    const auto ended = workers.wait(-1, 60);
    CHECK(ended[at.victim].code == 7);
    CHECK(has(ended[at.victim].err, "fault injected: stall in operation 2"));
    check_told(ended, at.victim, number_after(ended[at.victim], "leaves"), 2);
  }
}

namespace {

void check_late(const Ended& ended, uint32_t victim) {
  CAPTURE(ended.out);
  CHECK(ended.code == 3);
  const auto told = report(ended, "error");
  REQUIRE(told);
  CHECK(told->code == "timeout");
  CHECK(told->peer == int(victim));
  // Rank 0 is the one that would know.
  CHECK(has(told->text, victim == 0 ? "rank 0, which asks the others what they do, has not answered"
                                    : fmt::format("rank {} has not ", victim)));
  CHECK(has(told->text, "operation #5 (all_reduce of 1000 f32, sum)"));
  CHECK(told->took > 3 - slack);
  CHECK(told->took < 3 + slack);
  CHECK(number_after(ended, "destroyed") < 1);
}

}  // namespace

TEST_CASE("deaths: a stopped rank is named when the deadline has passed, and learns of it when it goes on") {
  const auto all = situations();
  // Those of one size at once: they only wait.
  for (size_t i = 0; i < 3; i++) {
    std::map<size_t, std::unique_ptr<Workers>> running;
    for (const size_t at : {i, i + 3}) {
      auto job = job_of(all[at], "stop", 1000);
      job.environment = {"RONDO_TIMEOUT=3"};
      running[at] = std::make_unique<Workers>(job);
    }
    for (const auto& entry : running) {
      const size_t at = entry.first;
      Workers& workers = *entry.second;
      const uint32_t victim = all[at].victim;
      CAPTURE_SITUATION(all[at]);
      const auto ended = workers.wait(int(victim));
      for (uint32_t rank = 0; rank < ended.size(); rank++) {
        CAPTURE(rank);
        if (rank != victim) check_late(ended[rank], victim);
      }
      const double since = seconds_now();
      ::kill(workers[victim].pid(), SIGCONT);
      const auto late = workers[victim].wait();
      CAPTURE(late.out);
      CHECK(late.code == 3);
      const auto told = report(late, "error");
      REQUIRE(told);
      CHECK(told->at - since < 2);
    }
  }
}

namespace {

// Jobs of every size over either transport, in which rank 0 or the last is the one that fails.
std::vector<Situation> first_or_last() {
  std::vector<Situation> all;
  for (const Situation& at : situations())
    for (const uint32_t rank : {0u, at.world - 1}) all.push_back({at.transport, at.world, rank});
  return all;
}

// All at once: they only wait.
std::vector<std::unique_ptr<Workers>> start_all(const std::vector<Situation>& where, const std::string& mode,
                                                const std::vector<std::string>& environment) {
  std::vector<std::unique_ptr<Workers>> all;
  for (const Situation& at : where) {
    auto job = job_of(at, mode, 1000);
    job.environment = environment;
    all.push_back(std::make_unique<Workers>(job));
  }
  return all;
}

}  // namespace

TEST_CASE("deaths: a rank that has not called is named also when rank 0, which has, does not answer") {
  const std::vector<Situation> where{{"tcp", 4, 2}, {"shm", 4, 2}};
  const auto all = start_all(where, "unasked", {"RONDO_TIMEOUT=2"});
  for (size_t i = 0; i < all.size(); i++) {
    CAPTURE_SITUATION(where[i]);
    for (const uint32_t rank : {1u, 3u}) {
      const auto ended = (*all[i])[rank].wait();
      CAPTURE(ended.out);
      const auto told = report(ended, "error");
      REQUIRE(told);
      CHECK(told->code == "timeout");
      CHECK(told->peer == 2);
      CHECK(has(told->text, "nothing of this operation has come from rank 2"));
      CHECK(has(told->text, "rank 0, which asks the others what they do, has not answered"));
      CHECK(told->took > 2 - slack);
      CHECK(told->took < 2 + slack);
    }
  }
}

TEST_CASE("deaths: a rank that comes late is waited for") {
  const auto where = first_or_last();
  const auto all = start_all(where, "late", {});
  for (size_t i = 0; i < all.size(); i++) {
    CAPTURE_SITUATION(where[i]);
    const auto ended = all[i]->wait();
    for (uint32_t rank = 0; rank < ended.size(); rank++) {
      CAPTURE(ended[rank].out);
      CHECK(ended[rank].code == 0);
      CHECK(has(ended[rank].out, fmt::format("fine {}", where[i].world)));
      const double joined = number_after(ended[rank], "joined");
      CHECK(joined < 2.2 + slack);
      if (rank != where[i].victim) CHECK(joined > 2 - slack);
    }
  }
}

TEST_CASE("deaths: without rank 0, or another, nobody joins, and all that wait say so at the init timeout") {
  const auto where = first_or_last();
  const auto all = start_all(where, "absent", {"RONDO_INIT_TIMEOUT=2"});
  for (size_t i = 0; i < all.size(); i++) {
    CAPTURE_SITUATION(where[i]);
    const auto ended = all[i]->wait(int(where[i].victim));
    for (uint32_t rank = 0; rank < ended.size(); rank++) {
      if (rank == where[i].victim) continue;
      CAPTURE(ended[rank].out);
      CHECK(ended[rank].code == 5);
      const auto told = report(ended[rank], "join");
      REQUIRE(told);
      CHECK(told->code == "timeout");
      CHECK(told->peer == int(where[i].victim));
      CHECK(has(told->text, fmt::format("rank {} ", where[i].victim)));
      CHECK(told->took > 2 - slack);
      CHECK(told->took < 2 + slack + 0.4);
    }
  }
}

namespace {

void check_declined(const Ended& ended, uint32_t rank, uint32_t victim, const std::string& setting) {
  CAPTURE(rank);
  CAPTURE(ended.out);
  CHECK(ended.code == 5);
  const auto told = report(ended, "join");
  REQUIRE(told);
  CHECK(told->code == "invalid_argument");
  CHECK(has(told->text, setting));
  CHECK(told->took < 2);
  if (rank == victim) return;
  CHECK(told->peer == int(victim));
  CHECK(has(told->text, fmt::format("rank {} could not join: ", victim)));
}

}  // namespace

TEST_CASE("deaths: what keeps one rank from joining is told to all at once") {
  // The first is found out after rank 0 has been reached, the others before anything is tried.
  const std::string settings[]{"RONDO_INTERFACE=nothing-of-this-name",
                               "RONDO_PORTS=9-1",
                               "RONDO_TLS=maybe",
                               "RONDO_INIT_TIMEOUT=never",
                               "RONDO_LOG=loud",
                               "RONDO_ADVERTISE=here"};
  size_t next = 0;
  for (const Situation& at : first_or_last())
    for (const size_t part : {0, 1, 2}) {
      const std::string& setting = settings[part == 0 ? 0 : 1 + next++ % 5];
      CAPTURE_SITUATION(at);
      CAPTURE(setting);
      auto job = job_of(at, "loop", 1);
      job.own.resize(at.world);
      job.own[at.victim] = {setting};
      Workers workers(job);
      const auto ended = workers.wait();
      for (uint32_t rank = 0; rank < at.world; rank++) check_declined(ended[rank], rank, at.victim, setting);
    }
}

TEST_CASE("deaths: a rank whose settings are wrong is heard under TLS too") {
  for (const uint32_t victim : {0u, 2u})
    for (const std::string setting : {"RONDO_TLS=maybe", "RONDO_HEARTBEAT=often"}) {
      // As rank 0 it cannot know whether the others use TLS: they are told that it does not.
      if (victim == 0 && setting == "RONDO_TLS=maybe") continue;
      CAPTURE(victim);
      CAPTURE(setting);
      auto job = job_of({"tcp", 3, victim}, "loop", 1);
      const auto port = 15000 + rondo::random_number() % 15000;
      job.environment = {fmt::format("RONDO_ROOT=127.0.0.1:{}", port)};
      job.own.assign(3, {"RONDO_TLS=1"});
      job.own[victim].push_back(setting);
      Workers workers(job);
      const auto ended = workers.wait();
      for (uint32_t rank = 0; rank < 3; rank++) check_declined(ended[rank], rank, victim, setting);
    }
}

TEST_CASE("deaths: a table that rank 0 cannot read is told to all at once") {
  auto job = job_of({"tcp", 3, 0}, "loop", 1);
  job.environment = {"RONDO_TUNING=/nowhere/table"};
  Workers workers(job);
  const auto ended = workers.wait();
  for (uint32_t rank = 0; rank < 3; rank++) {
    CAPTURE(ended[rank].out);
    const auto told = report(ended[rank], "join");
    REQUIRE(told);
    CHECK(has(told->text, "/nowhere/table"));
    CHECK(told->took < 2);
    if (rank != 0) CHECK(has(told->text, "rank 0 could not join: "));
  }
}

TEST_CASE("deaths: a rank whose settings are wrong does not wait long for those that it would tell") {
  std::vector<std::unique_ptr<Command>> alone;
  for (const uint32_t rank : {0u, 1u})
    alone.push_back(std::make_unique<Command>(
        std::vector<std::string>{WORKER_EXE},
        std::vector<std::string>{fmt::format("RONDO_ROOT=unix:@rondo-test-{}", rondo::random_number()),
                                 "RONDO_SECRET=s", "RONDO_WORLD=2", fmt::format("RONDO_RANK={}", rank),
                                 "RONDO_PORTS=9-1"}));
  for (const auto& each : alone) {
    const auto ended = each->wait();
    CAPTURE(ended.out);
    CHECK(ended.code == 5);
    CHECK(has(ended.out, "RONDO_PORTS=9-1"));
    CHECK(ended.seconds < 2 + slack);
  }
}

TEST_CASE("deaths: 64 descriptors are enough for 32 ranks, also to learn of a death") {
  if (sanitized) SKIP_TEST("so many sanitized processes are too slow");
  for (const std::string transport : {"tcp", "shm"}) {
    CAPTURE(transport);
    auto job = job_of({transport, 32, 17}, "loop", 100);
    job.limits = "ulimit -n 64";
    job.environment = {"RONDO_ALGORITHM=ring"};
    Workers workers(job);
    REQUIRE(workers.all_say("runs", 20));
    const double since = seconds_now();
    ::kill(workers[17].pid(), SIGKILL);
    check_told(workers.wait(-1, 30), 17, since, 2);
  }
}

TEST_CASE("deaths: when rank 0 has left in order a death is still told to those that wait for the dead") {
  const std::vector<Situation> where{{"tcp", 3, 1}, {"tcp", 5, 3}, {"shm", 3, 1}, {"shm", 5, 3}};
  const auto all = start_all(where, "orphans", {});
  for (size_t i = 0; i < all.size(); i++) {
    CAPTURE_SITUATION(where[i]);
    Workers& workers = *all[i];
    const auto& [transport, world, victim] = where[i];
    REQUIRE(workers[0].wait_for_output("left"));
    for (uint32_t rank = 1; rank < world; rank++) REQUIRE(workers[rank].wait_for_output("waits"));
    const double since = seconds_now();
    ::kill(workers[victim].pid(), SIGKILL);
    for (uint32_t rank = 1; rank < world; rank++) {
      CAPTURE(rank);
      if (rank != victim) check_lost(workers[rank].wait(), victim, since);
    }
  }
  for (const auto& workers : all) CHECK((*workers)[0].wait().code == 0);
}

TEST_CASE(
    "deaths: of a rank that dies while all duplicate, whatever they are at, every other is told by name") {
  for (const std::string transport : {"tcp", "shm", "auto"}) {
    CAPTURE(transport);
    std::vector<std::unique_ptr<Workers>> all;
    for (uint32_t i = 0; i < 16; i++) {
      auto job = job_of({transport, 4, i % 4}, "duplicate", 1000 + i * 500 + rondo::random_number() % 500);
      all.push_back(std::make_unique<Workers>(job));
    }
    for (uint32_t i = 0; i < all.size(); i++) {
      const auto ended = all[i]->wait();
      const uint32_t victim = i % 4;
      const double since = number_after(ended[victim], "dies");
      CAPTURE(ended[victim].out);
      REQUIRE(since > 0);
      for (uint32_t rank = 0; rank < 4; rank++) {
        CAPTURE(rank);
        if (rank != victim) check_lost(ended[rank], victim, since);
      }
    }
  }
}
