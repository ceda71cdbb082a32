// Broken schedules: the verifier must report each, naming who and where.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "schedule/catalogue.hpp"
#include "schedule/hazard.hpp"
#include "schedule/verify.hpp"
#include "tests/pure/node_maps.hpp"

using namespace rondo;
using namespace rondo::schedule;

namespace {

Claim ring(Operation operation, uint32_t world) {
  return claim_of(*find(operation, Algorithm::ring), {.world = world});
}

// The steps of rank 1 of a ring all-reduce on 4 ranks, which most mutants change:
//   0 send input[0]          2 send acc[3]           4 send acc[2]                 6 send output[1]   ...
//   1 recv_reduce acc[3]     3 recv_reduce acc[2]    5 recv_reduce output[1]       7 recv output[0]
Claim subject() { return ring(Operation::all_reduce, 4); }

void check_reported(const Claim& claim, Rank rank, uint32_t step, const std::string& reason) {
  const Verdict verdict = verify(claim);
  CAPTURE(verdict.counter_example());
  REQUIRE_FALSE(verdict.ok());
  CHECK(verdict.wrong->rank == rank);
  CHECK(verdict.wrong->step == step);
  CHECK(verdict.counter_example().find(fmt::format("rank {} step {} (", rank, step)) == 0);
  CHECK(verdict.counter_example().find(reason) != std::string::npos);
}

void insert(Claim& claim, Rank rank, uint32_t before, const Step& step) {
  auto& steps = claim.steps[rank];
  steps.insert(steps.begin() + before, step);
}

bool mentions(const std::string& text, Rank rank) {
  const std::string name = fmt::format("rank {}", rank);
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
    if (at + name.size() == text.size() || !std::isdigit(text[at + name.size()])) return true;
  return false;
}

}  // namespace

TEST_CASE("mutant: a wrong chunk is found at the receive that meets it") {
  Claim claim = subject();
  claim.steps[1][2].chunk = 0;
  check_reported(claim, 2, 3, "meets rank 1 step 2, which sends chunk 0");
}

TEST_CASE("mutant: a chunk that both ends have wrong") {
  Claim claim = subject();
  claim.steps[1][0].chunk = 2;  // and rank 2 adds it to its own chunk 2
  claim.steps[2][1].chunk = 2;
  check_reported(claim, 2, 2, "reads accumulator chunk 0 before it is written");
}

TEST_CASE("mutant: a dropped step") {
  Claim claim = subject();
  claim.steps[1].pop_back();
  check_reported(claim, 0, 10, "has no receive at the other end");
  claim = ring(Operation::all_gather, 3);
  claim.steps[2].erase(claim.steps[2].begin());  // the copy of the own shard
  const Verdict verdict = verify(claim);
  REQUIRE_FALSE(verdict.ok());
  CHECK(verdict.counter_example() == "rank 2 after its last step leaves output chunk 2 unwritten");
}

TEST_CASE("mutant: recv instead of recv_reduce") {
  Claim claim = subject();
  claim.steps[1][3].kind =
      StepKind::recv;  // the partial it passes on is still one: seen when it should be complete
  check_reported(claim, 2, 5, "finishes a partial that lacks rank 1");
  claim = subject();
  claim.steps[1][1].kind = StepKind::recv;
  check_reported(claim, 1, 2, "a contribution travels narrow");
}

TEST_CASE("mutant: wide missing on a partial, at either end") {
  Claim claim = subject();
  claim.steps[1][2].flags = 0;
  check_reported(claim, 1, 2, "a partial travels wide");
  claim = subject();
  claim.steps[1][3].flags = 0;
  check_reported(claim, 1, 3, "a partial travels wide");
}

TEST_CASE("mutant: wide on a result, wide on a contribution") {
  Claim claim = subject();
  claim.steps[1][6].flags = flag::wide;
  check_reported(claim, 1, 6, "a result travels narrow");
  claim = subject();
  claim.steps[1][0].flags = flag::wide;
  check_reported(claim, 1, 0, "a contribution travels narrow");
}

TEST_CASE("mutant: finish missing, on a partial, twice, where nothing is reduced") {
  Claim claim = subject();
  claim.steps[1][5].flags = flag::wide;
  check_reported(claim, 1, 5, "without finish");
  claim = subject();
  claim.steps[1][1].flags = flag::finish;
  check_reported(claim, 1, 1, "finishes a partial that lacks rank 2");
  claim = subject();
  insert(claim, 1, 6, {StepKind::copy, flag::finish, Buffer::output, Buffer::output, 2, 1, 1, 1});
  check_reported(claim, 1, 6, "finished already");
  claim = subject();
  claim.steps[1][7].flags = flag::finish;
  check_reported(claim, 1, 7, "reduces nothing");
  claim = ring(Operation::all_gather, 4);
  claim.steps[1][0].flags = flag::finish;
  check_reported(claim, 1, 0, "all_gather moves data unchanged");
  claim = ring(Operation::all_reduce, 1);
  claim.steps[0][0].flags = 0;
  check_reported(claim, 0, 0, "unfinished");
}

TEST_CASE("mutant: a wrong peer, a peer outside the world, a buffer that is not there") {
  Claim claim = subject();
  claim.steps[1][2].other = 3;
  check_reported(claim, 2, 3, "meets rank 1 step 4");
  claim = subject();
  claim.steps[1][2].other = 4;
  check_reported(claim, 1, 2, "outside the world");
  claim = subject();
  claim.steps[1][2].other = 1;
  check_reported(claim, 1, 2, "itself");
  claim = ring(Operation::reduce_scatter, 4);
  claim.steps[1][5].chunk = 2;
  check_reported(claim, 1, 5, "output chunk 2, which it does not have");
  claim = subject();
  claim.steps[1][2].chunk = 4;
  check_reported(claim, 1, 2, "uses chunk 4 of 4");
}

TEST_CASE("mutant: a contribution added twice") {
  Claim claim = subject();
  insert(claim, 1, 2, {StepKind::reduce, 0, Buffer::input, Buffer::accumulator, 0, 1, 3, 3});
  check_reported(claim, 1, 2, "adds the contribution of rank 1 a second time");
}

TEST_CASE("mutant: an accumulator read before it is written") {
  Claim claim = subject();
  claim.steps[1][0].source = Buffer::accumulator;
  check_reported(claim, 1, 0, "reads accumulator chunk 0 before it is written");
}

// Two ranks exchange contributions; rank 0 reduces what comes straight into its output.
Claim exchange() {
  using enum StepKind;
  using enum Buffer;
  Claim claim{Operation::all_reduce, {.world = 2}, 1, {}};
  claim.steps = {{{send, 0, input, none, 0, 1, 0, 1}, {recv_reduce, flag::finish, input, output, 0, 1, 0, 1}},
                 {{send, 0, input, none, 0, 1, 0, 0},
                  {recv, 0, none, accumulator, 0, 1, 0, 0},
                  {reduce, flag::finish, input, accumulator, 0, 1, 0, 0},
                  {copy, 0, accumulator, output, 0, 1, 0, 0}}};
  return claim;
}

TEST_CASE("mutant: memory overwritten while it is being sent, but only in place") {
  const Claim claim = exchange();
  CHECK_FALSE(hazard(Program(claim, Form::unfused, Placement::out_of_place)).has_value());
  check_reported(claim, 0, 1, "overwrites what step 0 may still be sending to rank 1");
}

TEST_CASE("mutant: memory overwritten while a step of the same rank may still read it") {
  using enum Buffer;
  Claim claim{Operation::all_reduce, {.world = 1}, 2, {}};
  claim.steps = {
      {{StepKind::copy, 0, input, accumulator, 0, 1, 0, 0}, {StepKind::copy, 0, input, output, 0, 1, 0, 1}}};
  const auto found = hazard(Program(claim, Form::unfused, Placement::in_place));
  REQUIRE(found.has_value());
  CHECK(found->rank == 0);
  CHECK(found->step == 1);
  CHECK(found->sentence.find("overwrites what step 0 may still be using") != std::string::npos);
  CHECK_FALSE(hazard(Program(claim, Form::unfused, Placement::out_of_place)).has_value());
  claim.steps[0][1] = {
      StepKind::copy, 0, accumulator, output, 0, 1, 0, 0};  // follows the read by the flow of data
  CHECK_FALSE(hazard(Program(claim, Form::unfused, Placement::in_place)).has_value());
}

TEST_CASE("mutant: ranks that sum in different orders") {
  using enum Buffer;
  Claim claim{Operation::all_reduce, {.world = 3}, 1, {}};
  // Rank 0 ends with (0+1)+2, rank 1 with 0+(1+2).
  for (Rank rank = 0; rank < 3; rank++) {
    const Rank first = (rank + 1) % 3, second = (rank + 2) % 3;
    claim.steps.push_back({{StepKind::send, 0, input, none, 0, 1, 0, first},
                           {StepKind::send, 0, input, none, 0, 1, 0, second},
                           {StepKind::recv_reduce, 0, input, accumulator, 0, 1, 0, first},
                           {StepKind::recv_reduce, flag::finish, accumulator, output, 0, 1, 0, second}});
  }
  check_reported(claim, 1, 3, "summed in another order");
}

TEST_CASE("mutant: two ranks that wait for each other's message, whatever the capacity") {
  using enum StepKind;
  using enum Buffer;
  // Rank 0 sends on chunk 0 only when rank 1 has returned it.
  const Claim claim{Operation::broadcast,
                    {.world = 2},
                    1,
                    {{{recv, 0, none, accumulator, 0, 1, 0, 1}, {send, 0, accumulator, none, 1, 1, 0, 1}},
                     {{recv, 0, none, output, 1, 1, 0, 0}, {send, 0, output, none, 0, 1, 0, 0}}}};
  check_reported(claim, 0, 0, "is stuck: nothing arrives from rank 1");
}

TEST_CASE("mutant: a barrier that drops a round, or sends two tokens over one link") {
  const Schedule& schedule = *find(Operation::barrier, Algorithm::dissemination);
  Claim claim = claim_of(schedule, {.world = 4});
  for (auto& steps : claim.steps) steps[6].kind = StepKind::copy;  // the last merge loses the own arrivals
  CHECK_FALSE(verify(claim).ok());
  claim = claim_of(schedule, {.world = 2});
  for (Rank rank : {0u, 1u}) {
    insert(claim, rank, 2, claim.steps[rank][1]);
    insert(claim, rank, 4, claim.steps[rank][3]);
  }
  CHECK(verify(claim).counter_example().find("second token on one link") != std::string::npos);
}

template <class Change>
void check_all(const Schedule& schedule, const Shape& shape, const Change& change) {
  const Claim good = claim_of(schedule, shape);
  for (Rank rank = 0; rank < shape.world; rank++) {
    for (uint32_t s = 0; s < good.steps[rank].size(); s++) {
      Claim claim = good;
      if (!change(claim, rank, s)) continue;
      const Verdict verdict = verify(claim);
      CAPTURE(name_of(schedule.algorithm));
      CAPTURE(name_of(schedule.operation));
      CAPTURE(shape.world);
      CAPTURE(fmt::format("{}", fmt::join(shape.nodes, " ")));
      CAPTURE(rank);
      CAPTURE(s);
      CAPTURE(verdict.counter_example());
      REQUIRE_FALSE(verdict.ok());
      REQUIRE(verdict.counter_example().find("step") != std::string::npos);
      // An arrival that a barrier loses is missed only by those it no longer reaches.
      if (schedule.operation != Operation::barrier) REQUIRE(mentions(verdict.counter_example(), rank));
    }
  }
}

// Every single change of a kind, to every step of every schedule.
template <class Change>
void check_all(const Change& change) {
  for (const Schedule& schedule : catalogue()) {
    for (uint32_t world = 1; world <= 6; world++) {
      auto maps = test::node_maps(world);
      if (schedule.algorithm != Algorithm::hierarchical) maps = {{}};
      for (const test::NodeMap& nodes : maps)
        check_all(schedule, {.world = world, .root = world / 2, .nodes = nodes}, change);
    }
  }
}

TEST_CASE("mutants: any step dropped") {
  check_all([](Claim& claim, Rank rank, uint32_t s) {
    claim.steps[rank].erase(claim.steps[rank].begin() + s);
    return true;
  });
}

TEST_CASE("mutants: any wide flag flipped") {
  check_all([](Claim& claim, Rank rank, uint32_t s) {
    claim.steps[rank][s].flags ^= flag::wide;
    return true;
  });
}

TEST_CASE("mutants: any finish flag flipped") {
  check_all([](Claim& claim, Rank rank, uint32_t s) {
    claim.steps[rank][s].flags ^= flag::finish;
    return true;
  });
}

TEST_CASE("mutants: any fan flag flipped") {
  check_all([](Claim& claim, Rank rank, uint32_t s) {
    // With two ranks only one contribution comes, and a fan of one is no different.
    if (claim.shape.world == 2) return false;
    claim.steps[rank][s].flags ^= flag::fan;
    return true;
  });
}

TEST_CASE("mutants: any published flag flipped") {
  check_all([](Claim& claim, Rank rank, uint32_t s) {
    claim.steps[rank][s].flags ^= flag::published;
    return true;
  });
}

TEST_CASE("mutant: a one-shot in place without the copy overwrites what others still read") {
  Claim claim = claim_of(*find(Operation::all_reduce, Algorithm::one_shot), {.world = 3});
  for (auto& steps : claim.steps) {
    steps.erase(steps.begin());
    for (Step& step : steps) step.source = Buffer::input;
  }
  check_reported(claim, 0, 2, "it waits for step 1 to be done with its buffer");
}

TEST_CASE("mutants: any chunk moved on by one") {
  check_all([](Claim& claim, Rank rank, uint32_t s) {
    if (claim.chunks == 1) return false;
    claim.steps[rank][s].chunk = (claim.steps[rank][s].chunk + 1) % claim.chunks;
    return true;
  });
}

TEST_CASE("mutants: any peer moved on by one") {
  check_all([](Claim& claim, Rank rank, uint32_t s) {
    Step& step = claim.steps[rank][s];
    if (claim.shape.world < 2 || (!sends(step) && !receives(step))) return false;
    step.other = (step.other + 1) % claim.shape.world;
    return true;
  });
}
