// What the larger schedules look like; that they are right is the verifier's business.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedule/catalogue.hpp"
#include "schedule/fuse.hpp"
#include "tests/pure/node_maps.hpp"

using namespace rondo;
using namespace rondo::schedule;

namespace {

const Schedule& the(Operation operation, Algorithm algorithm) { return *find(operation, algorithm); }

// How many chunks a rank sends to every other.
std::map<Rank, uint32_t> sent_by(const Schedule& schedule, Rank rank, const Shape& shape) {
  std::map<Rank, uint32_t> sent;
  for (const Step& step : steps_of(schedule, rank, shape))
    if (sends(step)) sent[step.other]++;
  return sent;
}

}  // namespace

TEST_CASE("halving: in round k a rank gives half of what it has to the neighbour at distance 2^k") {
  const Schedule& schedule = the(Operation::reduce_scatter, Algorithm::halving_doubling);
  for (uint32_t lg = 1; lg <= 6; lg++) {
    for (Rank rank = 0; rank < 1u << lg; rank++) {
      const auto sent = sent_by(schedule, rank, {.world = 1u << lg});
      REQUIRE(sent.size() == lg);
      for (uint32_t k = 0; k < lg; k++) REQUIRE(sent.at(rank ^ 1u << k) == 1u << (lg - 1 - k));
    }
  }
}

TEST_CASE("halving: every rank gives away every chunk but its own once, whatever the world") {
  for (uint32_t world = 1; world <= 64; world++) {
    for (Rank rank = 0; rank < world; rank++) {
      CAPTURE(world);
      CAPTURE(rank);
      std::vector<uint32_t> given(world), got(world);
      for (const Step& step :
           steps_of(the(Operation::reduce_scatter, Algorithm::halving_doubling), rank, {.world = world}))
        if (sends(step)) given[step.chunk]++;
      for (const Step& step :
           steps_of(the(Operation::all_gather, Algorithm::halving_doubling), rank, {.world = world}))
        if (receives(step)) got[step.chunk]++;
      for (uint32_t chunk = 0; chunk < world; chunk++) {
        REQUIRE(given[chunk] == (chunk != rank));
        REQUIRE(got[chunk] == (chunk != rank));
      }
    }
  }
}

TEST_CASE(
    "double tree: nobody is an inner node of both trees, and nobody sends more than the vector each way") {
  for (uint32_t world = 2; world <= 64; world++) {
    for (Rank rank = 0; rank < world; rank++) {
      std::set<uint32_t> inner;  // trees in which it has children
      uint32_t sent = 0;
      const auto steps = steps_of(the(Operation::all_reduce, Algorithm::double_tree), rank, {.world = world});
      for (const Step& step : steps) {
        if (step.kind == StepKind::recv_reduce) inner.insert(step.chunk);
        sent += sends(step);
      }
      CAPTURE(world);
      CAPTURE(rank);
      REQUIRE(inner.size() <= 1);
      REQUIRE(sent <= 4);  // halves: up and down
      uint32_t to_root = 0, from_root = 0;
      const Shape shape{.world = world, .root = 1};
      for (const Step& step : steps_of(the(Operation::reduce, Algorithm::double_tree), rank, shape))
        to_root += sends(step);
      for (const Step& step : steps_of(the(Operation::broadcast, Algorithm::double_tree), rank, shape))
        from_root += sends(step);
      REQUIRE(to_root == (rank == 1 ? 0 : 2));
      REQUIRE(from_root <= 2);
    }
  }
}

TEST_CASE("hierarchical: with every rank on a node of its own it is the ring, step by step") {
  for (uint32_t world = 1; world <= 64; world++) {
    test::NodeMap alone;
    for (Rank rank = 0; rank < world; rank++) alone.push_back(100 - rank);
    for (const Operation operation :
         {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather, Operation::broadcast})
      for (Rank rank = 0; rank < world; rank++)
        REQUIRE(steps_of(the(operation, Algorithm::hierarchical), rank,
                         {.world = world, .root = world / 2, .nodes = alone}) ==
                steps_of(the(operation, Algorithm::ring), rank, {.world = world, .root = world / 2}));
  }
}

TEST_CASE("hierarchical: between nodes goes what a ring of the nodes sends, and the leaders share it") {
  for (uint32_t world = 2; world <= 33; world++) {
    for (const test::NodeMap& nodes : test::node_maps(world)) {
      const Shape shape{.world = world, .nodes = nodes};
      const auto& schedule = the(Operation::all_reduce, Algorithm::hierarchical);
      const auto count = uint32_t(std::set<uint32_t>(nodes.begin(), nodes.end()).size());
      const uint32_t leaders = schedule.chunks(shape) / count;
      uint32_t between = 0, most = 0;
      for (Rank rank = 0; rank < world; rank++) {
        uint32_t mine = 0;
        for (const auto& [to, chunks] : sent_by(schedule, rank, shape))
          if (nodes[to] != nodes[rank]) mine += chunks;
        between += mine;
        most = std::max(most, mine);
      }
      CAPTURE(world);
      REQUIRE(between == count * 2 * (count - 1) * leaders);
      REQUIRE(most == 2 * (count - 1));
    }
  }
}
