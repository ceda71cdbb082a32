// Ranks that are stopped, and ranks that are only slow.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "workers.hpp"

using namespace rondo::test;

namespace {

Workers::Job job_of(const std::string& mode, const std::string& transport, uint32_t victim,
                    const std::vector<std::string>& environment) {
  return {4, transport, {mode, std::to_string(victim), "1000"}, environment};
}

}  // namespace

TEST_CASE("heartbeat: a stopped rank is lost after RONDO_HEARTBEAT, whichever it is") {
  for (const std::string transport : {"tcp", "shm"})
    for (const uint32_t victim : {0u, 2u}) {
      CAPTURE(transport);
      CAPTURE(victim);
      // Only rank 0's counts.
      auto job = job_of("stop", transport, victim, {});
      job.own.assign(4, {"RONDO_HEARTBEAT=60"});
      job.own[0] = {"RONDO_HEARTBEAT=1"};
      Workers workers(job);
      const auto ended = workers.wait(int(victim));
      for (uint32_t rank = 0; rank < 4; rank++) {
        if (rank == victim) continue;
        CAPTURE(rank);
        CAPTURE(ended[rank].out);
        CHECK(ended[rank].code == 3);
        const auto told = report(ended[rank], "error");
        REQUIRE(told);
        CHECK(told->code == "peer_lost");
        CHECK(told->peer == int(victim));
        CHECK(has(told->text, fmt::format("rank {} (pid {} on ", victim, workers[victim].pid())));
        CHECK(has(told->text, "has not been heard of for 1.0 s"));
        CHECK(has(told->text, "operation #5 (all_reduce of 1000 f32, sum)"));
        CHECK(told->took > 0.9);
        CHECK(told->took < 3);
      }
      ::kill(workers[victim].pid(), SIGCONT);
      const auto late = workers[victim].wait();
      CHECK(late.code == 3);
      CHECK(report(late, "error"));
    }
}

TEST_CASE("heartbeat: a rank that is stopped for less is only slow") {
  Workers workers(job_of("loop", "tcp", 3, {"RONDO_HEARTBEAT=3"}));
  REQUIRE(workers.all_say("runs"));
  ::kill(workers[3].pid(), SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  ::kill(workers[3].pid(), SIGCONT);
  for (uint32_t rank = 0; rank < 4; rank++) CHECK(!workers[rank].wait_for_output("error", 0.2));
}

TEST_CASE(
    "heartbeat: a rank that computes for longer than RONDO_HEARTBEAT is only slow, and the others can be "
    "asked") {
  Workers workers(job_of("slow", "tcp", 2, {"RONDO_HEARTBEAT=1", "RONDO_STATE_SIGNAL=1"}));
  REQUIRE(workers.all_say("joined"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const pid_t asked = workers[1].pid();
  ::kill(asked, SIGUSR1);
  const auto ended = workers.wait();
  for (const Ended& each : ended) {
    CAPTURE(each.out);
    CHECK(each.code == 0);
    CHECK(has(each.out, "fine 4"));
  }
  CAPTURE(ended[1].err);
  const auto state = nlohmann::json::parse(ended[1].err, nullptr, false);
  REQUIRE(!state.is_discarded());
  CHECK(state["pid"] == asked);
  REQUIRE(state["communicators"].size() == 1);
  const auto& communicator = state["communicators"][0];
  CHECK(communicator["rank"] == 1);
  CHECK(communicator["world"] == 4);
  CHECK(communicator["transport"] == "tcp");
  CHECK(communicator["failure"].is_null());
  REQUIRE(communicator["operations"].size() == 1);
  CHECK(communicator["operations"][0]["call"] == "all_reduce of 1000 f32, sum");
  CHECK(communicator["operations"][0]["outcome"] == "running");
}

TEST_CASE("heartbeat: a rank that is stopped when a link to it is first used has until the call's deadline") {
  const auto start = [](const std::string& timeout) {
    return Workers::Job{
        2, "tcp", {"halt", "1", "1000"}, {"RONDO_HEARTBEAT=0", "RONDO_INIT_TIMEOUT=2", timeout}};
  };
  Workers patient(start("RONDO_TIMEOUT=60"));
  REQUIRE(patient.all_say("joined"));
  std::this_thread::sleep_for(std::chrono::milliseconds(5000));
  ::kill(patient[1].pid(), SIGCONT);
  for (const Ended& each : patient.wait()) {
    CAPTURE(each.out);
    CHECK(each.code == 0);
    CHECK(has(each.out, "fine 2"));
  }
  for (const int seconds : {1, 4}) {
    CAPTURE(seconds);
    Workers hasty(start(fmt::format("RONDO_TIMEOUT={}", seconds)));
    const auto ended = hasty.wait(1);
    CAPTURE(ended[0].out);
    CHECK(ended[0].code == 3);
    const auto told = report(ended[0], "error");
    REQUIRE(told);
    CHECK(told->code == "timeout");
    CHECK(told->peer == 1);
    CHECK(has(told->text, "the deadline passed: rank 1 has not answered the connection"));
    CHECK(told->took > seconds - 0.1);
    CHECK(told->took < seconds + 1);
    ::kill(hasty[1].pid(), SIGCONT);
    CHECK(hasty[1].wait().code == 3);
  }
}
