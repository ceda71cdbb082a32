#include "schedule/verify.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/catalogue.hpp"
#include "tests/pure/canonical_tree.hpp"
#include "tests/pure/node_maps.hpp"
#include "tests/sanitized.hpp"

using namespace rondo;
using namespace rondo::schedule;

namespace {

bool has_roots(const Schedule& schedule) {
  // The root of a send_recv is how far it sends.
  return is_rooted(schedule.operation) || schedule.operation == Operation::send_recv;
}

bool has_no_ring(const Schedule& schedule) { return find(schedule.operation, Algorithm::ring) == nullptr; }

// Calls visit(schedule, shape) for the whole catalogue, worlds first to last and all roots of small worlds, and
// for what looks at nodes with all maps of nodes.
template <class Visit>
void each_case(uint32_t first, uint32_t last, const Visit& visit) {
  for (const Schedule& schedule : catalogue()) {
    for (uint32_t world = first; world <= last; world++) {
      auto maps = test::node_maps(world);
      if (schedule.algorithm != Algorithm::hierarchical) maps = {{}};
      // With every rank alone it is the ring, step by step (algorithms.cpp), which is proven already.
      if (maps.size() > 1 && world > 16 && !has_no_ring(schedule)) maps.erase(maps.begin() + 1);
      for (const test::NodeMap& nodes : maps)
        for (Rank root = 0; root < (has_roots(schedule) ? world : 1); root++)
          if (world <= 16 || root == 0 || root + 1 == world)
            visit(schedule, Shape{world, root, nobody, nobody, nodes});
    }
  }
}

// A sanitizer makes the proofs many times slower and has nothing to find in the larger worlds.
constexpr uint32_t largest_world = test::sanitized ? 24 : 64;

Claim ring(Operation operation, uint32_t world) {
  return claim_of(*find(operation, Algorithm::ring), {.world = world});
}

}  // namespace

TEST_CASE("verify: the whole catalogue is proven for worlds 1 to 64") {
  uint32_t cases = 0;
  each_case(1, largest_world, [&](const Schedule& schedule, const Shape& shape) {
    CAPTURE(name_of(schedule.algorithm));
    CAPTURE(name_of(schedule.operation));
    CAPTURE(shape.world);
    CAPTURE(shape.root);
    CAPTURE(fmt::format("{}", fmt::join(shape.nodes, " ")));
    REQUIRE(verify(schedule, shape).counter_example() == "");
    cases++;
  });
  uint32_t expected = 0;
  for (const Schedule& schedule : catalogue()) {
    for (uint32_t world = 1; world <= largest_world; world++) {
      // Of the five maps some are the same in worlds of up to three ranks.
      const uint32_t distinct = world == 1                             ? 2
                                : world == 2                           ? 3
                                : world > 16 && !has_no_ring(schedule) ? 4
                                                                       : 5;
      const uint32_t roots = world <= 16 ? world : 2;
      expected +=
          (has_roots(schedule) ? roots : 1) * (schedule.algorithm == Algorithm::hierarchical ? distinct : 1);
    }
  }
  CHECK(cases == expected);
}

TEST_CASE("verify: reports the order of summation") {
  const Verdict verdict = verify(ring(Operation::all_reduce, 4));
  REQUIRE(verdict.ok());
  CHECK(verdict.order(0) == "0+((1+2)+3)");
  CHECK(verdict.order(1) == "(0+(2+3))+1");
  CHECK(verdict.order(3) == "((0+1)+2)+3");
  CHECK(verify(ring(Operation::reduce_scatter, 3)).order(2) == "(0+1)+2");
  CHECK(verify(ring(Operation::all_reduce, 1)).order(0) == "0");
}

TEST_CASE(
    "verify: what is called canonical sums in the order of the canonical tree, every chunk on every rank") {
  CHECK(test::canonical_tree(7) == "((0+1)+(2+3))+((4+5)+6)");
  uint32_t canonical = 0;
  each_case(1, largest_world, [&](const Schedule& schedule, const Shape& shape) {
    if (!reduces(schedule.operation)) return;
    const Claim claim = claim_of(schedule, shape);
    const Meaning meaning = interpret(Program(claim, Form::fused, Placement::in_place));
    const std::string wanted = test::canonical_tree(shape.world);
    bool all = true;
    for (const Value value : meaning.chunks) all = all && meaning.values.tree(value) == wanted;
    CAPTURE(name_of(schedule.algorithm));
    CAPTURE(shape.world);
    if (schedule.canonical) REQUIRE(all);
    canonical += schedule.canonical && shape.world > 3;
    // A ring is not, from 4 ranks on: the flag is not given for nothing.
    if (schedule.algorithm == Algorithm::ring && shape.world > 3) REQUIRE_FALSE(all);
  });
  CHECK(canonical > 0);
}

TEST_CASE("verify: with W slots for a window of W the fused ring is stuck, with W+1 it is not") {
  for (Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather}) {
    for (uint32_t world = 3; world <= 9; world++) {
      for (uint32_t window = 1; window <= 8; window++) {
        CAPTURE(world);
        CAPTURE(window);
        const Claim claim = ring(operation, world);
        const auto stuck = fused_progress(claim, window, window);
        REQUIRE(stuck.has_value());
        REQUIRE(stuck->sentence.find("slots to rank") != std::string::npos);
        REQUIRE_FALSE(fused_progress(claim, window, window + 1).has_value());
      }
    }
  }
}

TEST_CASE("verify: what does not close a circle of slots is not stuck with W of them") {
  const Claim chain = ring(Operation::broadcast, 5);
  CHECK_FALSE(fused_progress(chain, 2, 2).has_value());
  const Claim pair = ring(Operation::all_reduce, 2);
  CHECK(fused_progress(pair, 2, 2, Form::fused).has_value());
  CHECK_FALSE(fused_progress(pair, 2, 2, Form::stored).has_value());
}

TEST_CASE("verify: steps posted one after another without buffering lock a ring up") {
  for (uint32_t world = 2; world <= 9; world++) {
    const auto stuck = unfused_progress(ring(Operation::all_reduce, world), 0, Posting::serial);
    REQUIRE(stuck.has_value());
    CHECK(stuck->rank == 0);
    CHECK(stuck->step == 0);
    CHECK(stuck->sentence.find("rank 0 step 0 (send chunk") == 0);
  }
  CHECK_FALSE(unfused_progress(ring(Operation::broadcast, 9), 0, Posting::serial).has_value());
  CHECK_FALSE(unfused_progress(ring(Operation::all_reduce, 9), unbounded, Posting::serial).has_value());
}

TEST_CASE("verify: an engine that runs fused actions strictly in their order gets on with W+1 slots") {
  each_case(1, 12, [](const Schedule& schedule, const Shape& shape) {
    for (uint32_t window : {1u, 2u, 5u}) {
      const auto stuck =
          fused_progress(claim_of(schedule, shape), window, window + 1, Form::fused, Posting::serial);
      REQUIRE_FALSE(stuck.has_value());
    }
  });
}
