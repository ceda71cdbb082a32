// Ranks that are killed or stopped in the middle of a sum of 64 MiB: the others go on.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "workers.hpp"

using namespace rondo::test;

namespace {

Workers::Job job_of(int world, const std::string& transport, std::vector<std::string> arguments) {
  return {uint32_t(world), transport, std::move(arguments), {"RONDO_HEARTBEAT=1"}, {}, {}, SURVIVOR_EXE};
}

struct Killed {
  int world;
  std::vector<int> victims;
};
struct Stopped {
  int world, victim;
  std::string transport;
};

std::string list(int world, const std::vector<int>& without) {
  std::string text;
  for (int rank = 0; rank < world; ++rank)
    if (std::ranges::find(without, rank) == without.end())
      text += fmt::format("{}{}", text.empty() ? "" : " ", rank);
  return text;
}

void check_survivor(const std::string& out, const std::string& transport, const std::string& ranks) {
  const size_t at = out.find("shrunk in ");
  REQUIRE_MESSAGE(at != std::string::npos, out);
  int took = -1;
  CHECK(std::sscanf(out.c_str() + at, "shrunk in %d ms", &took) == 1);
  CHECK(took < 2000);
  CHECK_MESSAGE(has(out, fmt::format(" ms, over {} to {}\n", transport, ranks)), out);
  CHECK_MESSAGE(has(out, "\nright\n"), out);
}

}  // namespace

TEST_CASE("shrink: ranks killed in the middle of a sum are left out within 2 s, and the next sum is right") {
  for (const std::string transport : {"tcp", "shm"})
    for (const Killed& each : std::vector<Killed>{
             {4, {0}}, {4, {1}}, {4, {3}}, {4, {0, 1}}, {8, {0}}, {8, {5}}, {8, {0, 4}}, {8, {7}}}) {
      const int world = each.world;
      const auto& victims = each.victims;
      CAPTURE(transport);
      CAPTURE(world);
      CAPTURE(victims.size());
      CAPTURE(victims.front());
      std::vector<std::string> arguments{"kill"};
      for (const int victim : victims) arguments.push_back(std::to_string(victim));
      Workers ranks(job_of(world, transport, arguments));
      for (int rank = 0; rank < world; ++rank) {
        CAPTURE(rank);
        const auto ended = ranks[uint32_t(rank)].wait(30);
        if (std::ranges::find(victims, rank) != victims.end()) {
          CHECK(ended.code == 128 + SIGKILL);
          continue;
        }
        // The second victim dies in a shrink: before all had met, or else from the successor.
        if (victims.size() > 1 && has(ended.out, fmt::format("to {}\n", list(world, {victims[0]})))) {
          CHECK_MESSAGE(has(ended.out, fmt::format("rank {}", victims[1] - (victims[1] > victims[0]))),
                        ended.out);
          continue;
        }
        CHECK(ended.code == 0);
        check_survivor(ended.out, transport, list(world, victims));
      }
    }
}

TEST_CASE("shrink: a stopped rank is left out, and when it wakes it is told so") {
  for (const Stopped& each :
       std::vector<Stopped>{{4, 0, "tcp"}, {4, 2, "shm"}, {8, 0, "shm"}, {8, 3, "tcp"}}) {
    const int world = each.world, victim = each.victim;
    const std::string& transport = each.transport;
    CAPTURE(transport);
    CAPTURE(world);
    CAPTURE(victim);
    Workers ranks(job_of(world, transport, {"stop", std::to_string(victim)}));
    for (int rank = 0; rank < world; ++rank)
      if (rank != victim) CHECK(ranks[uint32_t(rank)].wait_for_output("right\n", 20));
    ::kill(ranks[uint32_t(victim)].pid(), SIGCONT);
    const auto woken = ranks[uint32_t(victim)].wait(15);
    CHECK_MESSAGE(has(woken.out, "no successor: "), woken.out);
    CHECK_MESSAGE(
        has(woken.out, fmt::format("has gone on in a new communicator without this rank, {}", victim)),
        woken.out);
    for (int rank = 0; rank < world; ++rank) {
      if (rank == victim) continue;
      ::kill(ranks[uint32_t(rank)].pid(), SIGKILL);
      check_survivor(ranks[uint32_t(rank)].wait(5).out, transport, list(world, {victim}));
    }
  }
}
