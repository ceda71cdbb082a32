// What a ring and a barrier look like; that they are right is the verifier's business.
#include "schedule/ring.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "schedule/catalogue.hpp"
#include "schedule/fuse.hpp"

using namespace rondo;
using namespace rondo::schedule;

namespace {
std::vector<Step> steps(Operation operation, Rank rank, uint32_t world, Rank root = 0) {
  for (const Schedule& schedule : catalogue())
    if (schedule.operation == operation) return steps_of(schedule, rank, {.world = world, .root = root});
  return {};
}
}  // namespace

TEST_CASE("ring: sends only to the next rank, receives only from the one before, one of each per round") {
  for (uint32_t world = 2; world <= 64; world++) {
    for (Rank rank = 0; rank < world; rank++) {
      std::vector<uint32_t> sent(2 * world - 2), received(2 * world - 2);
      for (const Step& step : steps(Operation::all_reduce, rank, world)) {
        REQUIRE(step.other == (sends(step) ? (rank + 1) % world : (rank + world - 1) % world));
        (sends(step) ? sent : received).at(step.round)++;
      }
      REQUIRE(std::ranges::all_of(sent, [](uint32_t n) { return n == 1; }));
      REQUIRE(std::ranges::all_of(received, [](uint32_t n) { return n == 1; }));
    }
  }
}

TEST_CASE("ring: chunk c starts at rank c+1 and ends, finished, at rank c") {
  const auto list = steps(Operation::reduce_scatter, 2, 4);
  CHECK(list.front() == Step{StepKind::send, 0, Buffer::input, Buffer::none, 0, 1, 1, 3});
  CHECK(list.back() ==
        Step{StepKind::recv_reduce, flag::wide | flag::finish, Buffer::input, Buffer::output, 2, 1, 2, 1});
}

TEST_CASE("ring: a world of one copies, and finishes what is reduced") {
  CHECK(steps(Operation::all_reduce, 0, 1) ==
        std::vector<Step>{{StepKind::copy, flag::finish, Buffer::input, Buffer::output, 0, 1, 0, 0}});
  CHECK(steps(Operation::all_gather, 0, 1) ==
        std::vector<Step>{{StepKind::copy, 0, Buffer::input, Buffer::output, 0, 1, 0, 0}});
  CHECK(steps(Operation::broadcast, 0, 1).empty());
}

TEST_CASE("ring: a broadcast is a chain from its root") {
  CHECK(steps(Operation::broadcast, 2, 4, 2) ==
        std::vector<Step>{{StepKind::send, 0, Buffer::output, Buffer::none, 0, 1, 0, 3}});
  CHECK(steps(Operation::broadcast, 1, 4, 2) ==
        std::vector<Step>{{StepKind::recv, 0, Buffer::none, Buffer::output, 2, 1, 0, 0}});
}

TEST_CASE("barrier: ceil(log2 N) rounds, every one with another peer") {
  for (uint32_t world = 1; world <= 64; world++) {
    for (Rank rank = 0; rank < world; rank++) {
      std::set<Rank> to, from;
      uint32_t sent = 0, received = 0;
      for (const Step& step : steps(Operation::barrier, rank, world)) {
        if (sends(step)) sent++, to.insert(step.other);
        if (receives(step)) received++, from.insert(step.other);
      }
      const auto rounds = uint32_t(std::bit_width(world - 1));
      REQUIRE(sent == rounds);
      REQUIRE(received == rounds);
      REQUIRE(to.size() == rounds);
      REQUIRE(from.size() == rounds);
      REQUIRE(to.count(rank) == 0);
    }
  }
}
