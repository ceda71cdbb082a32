#include "schedule/fuse.hpp"

#include <doctest/doctest.h>

#include "schedule/catalogue.hpp"

using namespace rondo::schedule;

TEST_CASE("fuse: a ring all-reduce on 4 ranks becomes 7 actions that touch memory once") {
  const Schedule* ring = find(Operation::all_reduce, Algorithm::ring);
  REQUIRE(ring != nullptr);
  const auto actions = fuse(steps_of(*ring, 0, {.world = 4}), Publications::no);
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
  CHECK(fuse(steps, Publications::no).size() == 3);
}

TEST_CASE("fuse: a fan is one action, a publication only where all ranks see one memory") {
  const Schedule* direct = find(Operation::all_reduce, Algorithm::direct);
  REQUIRE(direct != nullptr);
  const auto steps = steps_of(*direct, 1, {.world = 4});
  using enum ActionKind;
  const auto check = [&](const std::vector<Action>& actions, std::vector<ActionKind> kinds) {
    std::vector<ActionKind> found;
    uint32_t covered = 0;
    for (const Action& action : actions) {
      found.push_back(action.kind);
      covered += action.steps();
      CHECK(action.run == (action.kind == reduce_fan || action.kind == publish ? 3 : 1));
    }
    CHECK(found == kinds);
    CHECK(covered == steps.size());
  };
  check(fuse(steps, Publications::no), {send, send, send, reduce_fan, send, send, send, recv, recv, recv});
  check(fuse(steps, Publications::yes), {send, send, send, reduce_fan, publish, recv, recv, recv});
  check(unfused(steps), {send, send, send, reduce_fan, send, send, send, recv, recv, recv});
}
