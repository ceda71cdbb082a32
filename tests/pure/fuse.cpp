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

TEST_CASE("fuse: a sum of several goes straight on after the last, if only what is sent is its end") {
  const auto kinds_of = [](const std::vector<Step>& steps) {
    std::vector<ActionKind> kinds;
    for (const Action& action : fuse(steps, Publications::no)) kinds.push_back(action.kind);
    return kinds;
  };
  using enum ActionKind;
  // Rank 1 of a double tree on 4 ranks has two children in half 0 and is a leaf of half 1.
  const Schedule* trees = find(Operation::all_reduce, Algorithm::double_tree);
  REQUIRE(trees != nullptr);
  CHECK(kinds_of(steps_of(*trees, 1, {.world = 4})) ==
        std::vector{recv_reduce, recv_reduce_send, send, recv_copy_send, send, recv});
  std::vector<Step> steps{
      {StepKind::recv_reduce, 0, Buffer::input, Buffer::accumulator, 0, 1, 5, 1},
      {StepKind::recv_reduce, 0, Buffer::accumulator, Buffer::accumulator, 0, 1, 5, 2},
      {StepKind::send, flag::wide, Buffer::accumulator, Buffer::none, 1, 1, 5, 3},
  };
  CHECK(kinds_of(steps) == std::vector{recv_reduce, recv_reduce_send});
  steps.push_back({StepKind::copy, 0, Buffer::accumulator, Buffer::output, 1, 1, 5, 5});
  CHECK(kinds_of(steps) == std::vector{recv_reduce, recv_reduce, send, copy});
  steps[3] = {
      StepKind::recv, 0, Buffer::none, Buffer::accumulator, 1, 1, 5, 1};  // something else is there then
  steps.push_back({StepKind::copy, 0, Buffer::accumulator, Buffer::output, 1, 1, 5, 5});
  CHECK(kinds_of(steps) == std::vector{recv_reduce, recv_reduce_send, recv, copy});
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
