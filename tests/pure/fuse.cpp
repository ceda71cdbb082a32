#include "schedule/fuse.hpp"

#include <doctest/doctest.h>

#include "schedule/catalogue.hpp"

using namespace rondo::schedule;

TEST_CASE("fuse: a ring all-reduce on 4 ranks becomes 7 actions that touch memory once") {
  const Schedule* ring = find(Operation::all_reduce, Algorithm::ring);
  REQUIRE(ring != nullptr);
  const auto actions = fuse(steps_of(*ring, 0, {.world = 4}));
  std::vector<ActionKind> kinds;
  for (const Action& action : actions) kinds.push_back(action.kind);
  using enum ActionKind;
  CHECK(kinds == std::vector{send, recv_reduce_send, recv_reduce_send, recv_reduce_copy_send, recv_copy_send,
                             recv_copy_send, recv});
}

TEST_CASE("fuse: an accumulator that something else reads is not elided") {
  using enum StepKind;
  const std::vector<Step> steps{
      {recv_reduce, 0, Buffer::input, Buffer::accumulator, 0, 1, 5, 1},
      {send, flag::wide, Buffer::accumulator, Buffer::none, 1, 1, 5, 2},
      {send, flag::wide, Buffer::accumulator, Buffer::none, 1, 1, 5, 3},
  };
  CHECK(fuse(steps).size() == 3);
}
