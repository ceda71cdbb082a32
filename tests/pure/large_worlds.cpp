// Proofs for worlds that need more than a word of bits.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/catalogue.hpp"
#include "schedule/verify.hpp"
#include "tests/pure/canonical_tree.hpp"
#include "tests/pure/node_maps.hpp"

using namespace rondo;
using namespace rondo::schedule;

namespace {

template <class Visit>
void each_case(uint32_t world, const Visit& visit) {
  for (const Schedule& schedule : catalogue()) {
    auto maps = test::node_maps(world);
    if (schedule.algorithm != Algorithm::hierarchical) maps = {{}};
    if (maps.size() > 1 && world > 130) maps.erase(maps.begin(), maps.end() - 2);
    for (const test::NodeMap& nodes : maps) {
      CAPTURE(name_of(schedule.algorithm));
      CAPTURE(name_of(schedule.operation));
      CAPTURE(world);
      CAPTURE(fmt::format("{}", fmt::join(nodes, " ")));
      visit(schedule, Shape{world, world / 3, nobody, nobody, nodes});
    }
  }
}

// What the schedule computes, and if it is called canonical, in which order.
void check_result(const Schedule& schedule, const Shape& shape) {
  const Claim claim = claim_of(schedule, shape);
  const Meaning meaning = interpret(Program(claim, Form::fused, Placement::in_place));
  REQUIRE((meaning.wrong ? meaning.wrong->sentence : "") == "");
  if (!schedule.canonical) return;
  const std::string wanted = test::canonical_tree(shape.world);
  bool all = !meaning.chunks.empty();
  for (const Value value : meaning.chunks) all = all && meaning.values.tree(value) == wanted;
  REQUIRE(all);
}

std::string complaint(const Claim& claim) { return verify(claim).counter_example(); }

}  // namespace

TEST_CASE("large worlds: faults beyond the 64th rank are named") {
  const Claim good = claim_of(*find(Operation::all_reduce, Algorithm::ring), {.world = 130});
  CHECK(complaint(good) == "");
  Claim claim = good;  // rank 128 adds its contribution to chunk 126 twice, then the sum lacks rank 129's
  auto& steps = claim.steps[128];
  CHECK(steps[2].source == Buffer::accumulator);
  steps.insert(steps.begin() + 2, {StepKind::reduce, 0, Buffer::input, Buffer::accumulator, 0, 1,
                                   steps[2].chunk, steps[2].chunk});
  CHECK(complaint(claim).find("rank 128 step 2 (reduce chunk 126 from chunk 126) adds the contribution of "
                              "rank 128 a second time") == 0);
  claim = good;
  claim.steps[129][3].kind = StepKind::recv;
  CHECK(complaint(claim).find("lacks rank 129") != std::string::npos);
  claim = good;
  claim.steps[65][1].kind = StepKind::recv;  // its own contribution is lost, a raw one goes on
  CHECK(complaint(claim).find("rank 65 step 2") == 0);
}

TEST_SUITE("slow: large worlds") {
  TEST_CASE("large worlds: everything is proven for some of them") {
    for (const uint32_t world : {65u, 96u, 127u, 128u, 130u})
      each_case(world, [](const Schedule& schedule, const Shape& shape) {
        REQUIRE(verify(schedule, shape).counter_example() == "");
      });
  }

  TEST_CASE("large worlds: results and canonical order for 65 to 130, 256, 511 and 1024") {
    for (uint32_t world = 65; world <= 130; world++) each_case(world, check_result);
    each_case(256, check_result);
    // What has as many chunks as pairs needs too much memory beyond, a fan on every rank too much time.
    each_case(511, [](const Schedule& schedule, const Shape& shape) {
      if (schedule.operation != Operation::all_to_all) check_result(schedule, shape);
    });
    each_case(1024, [](const Schedule& schedule, const Shape& shape) {
      const bool heavy = schedule.algorithm == Algorithm::direct || schedule.algorithm == Algorithm::one_shot;
      if (!heavy || is_rooted(schedule.operation)) check_result(schedule, shape);
    });
  }
}
