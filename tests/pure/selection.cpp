#include "engine/selection.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "base/environment.hpp"
#include "engine/tuning.hpp"
#include "schedule/catalogue.hpp"
#include "tests/pure/node_maps.hpp"

using namespace rondo;
using namespace rondo::engine;
using schedule::Algorithm;
using schedule::Operation;

namespace {

Call call_of(Operation operation, uint64_t count, DataType type = DataType::f32,
             Reduction reduction = Reduction::sum) {
  return {.operation = operation, .type = type, .reduction = reduction, .count = count};
}

Algorithm chosen(Operation operation, uint64_t bytes, const Situation& situation, const Costs& costs) {
  return Selection(situation, costs).choose(call_of(operation, bytes / 4));
}

constexpr std::array every_operation{Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                     Operation::broadcast,  Operation::barrier,        Operation::reduce,
                                     Operation::gather,     Operation::scatter,        Operation::all_to_all,
                                     Operation::send_recv};

// As a table that is empty.
Algorithm select(const Call& call, const Situation& situation) { return Selection(situation).choose(call); }

// Only this costs anything, but for a little that keeps the rest in order.
constexpr Costs only_rounds{.alpha = {1e6, 1e6},
                            .message = {},
                            .beta = 1e-6,
                            .gamma = 0,
                            .cold = {},
                            .stored = {},
                            .caches = 1e9,
                            .between_nodes_alpha = 0,
                            .between_nodes_beta = 0};
constexpr Costs only_bytes{.alpha = {1e-3, 1e-3},
                           .message = {},
                           .beta = 1,
                           .gamma = 0,
                           .cold = {},
                           .stored = {},
                           .caches = 1e9,
                           .between_nodes_alpha = 0,
                           .between_nodes_beta = 0};

}  // namespace

TEST_CASE("selection: every call has a choice that can run, in every situation") {
  for (const uint32_t world : {1u, 2u, 3u, 7u, 16u, 200u})
    for (const bool publishes : {false, true}) {
      const std::vector<uint32_t> nodes = test::node_maps(world).back();
      const bool spread = !publishes && world > 3;
      Selection selection(
          {world, publishes, 2, spread ? std::span<const uint32_t>(nodes) : std::span<const uint32_t>()});
      for (const Operation operation : every_operation)
        for (const DataType type : all_data_types)
          for (const Reduction reduction : {Reduction::sum, Reduction::avg, Reduction::weighted_avg})
            for (const bool reproducible : {false, true})
              for (const uint64_t count : {0ull, 1ull, 1000ull, 1ull << 20, 1ull << 50}) {
                if (!is_defined(type, reduction)) continue;
                Call call = call_of(operation, count, type, reduction);
                call.reproducible = reproducible;
                REQUIRE(can_run(call, selection.choose(call)));
              }
    }
}

TEST_CASE("selection: the table says what ranking says, call by call, and every rank the same") {
  const std::vector<uint32_t> nodes{0, 0, 0, 1, 1};
  const Situation situation{5, false, 2, nodes};
  Selection forward(situation), backward(situation);
  for (unsigned size = 0; size < 40; size++)
    for (const Operation operation : every_operation)
      backward.choose(call_of(operation, uint64_t(1) << (39 - size)));
  for (unsigned size = 0; size < 40; size++)
    for (const Operation operation : every_operation) {
      const Call call = call_of(operation, uint64_t(1) << size);
      const Algorithm algorithm = forward.choose(call);
      CHECK(algorithm == backward.choose(call));
      CHECK(algorithm == forward.candidates(call).front().algorithm);
      CHECK(algorithm == select(call, situation));
    }
}

TEST_CASE("selection: sizes belong together up to the next power of two") {
  CHECK(Selection::class_of(0) == 0);
  CHECK(Selection::class_of(1) == 0);
  CHECK(Selection::class_of(2) == 1);
  CHECK(Selection::class_of(1024) == 10);
  CHECK(Selection::class_of(1025) == 11);
  CHECK(Selection::class_of(UINT64_MAX) == Selection::classes - 1);
}

TEST_CASE("model: a prediction is the sum of its parts") {
  schedule::Profile profile;
  profile.inner_rounds = 3;
  profile.outer_rounds = 2;
  profile.busiest = {.messages = 5, .bytes = 2, .reduced = 1, .cold = 0.5, .stored = 0.25};
  profile.mean = {.messages = 4, .bytes = 1, .reduced = 0.5, .cold = 0.5, .stored = 0.125};
  profile.outgoing = 1.5;
  const Costs costs{.alpha = {.own = 10, .shared = 100},
                    .message = {.own = 1, .shared = 2},
                    .beta = 0.5,
                    .gamma = 0.25,
                    .cold = {.near = 0, .far = 4},
                    .stored = {.near = 1, .far = 8},
                    .caches = 2000,
                    .between_nodes_alpha = 1000,
                    .between_nodes_beta = 2};
  // A core each, in caches: the busiest rank counts.
  CHECK(predicted(profile, 1000, {2, false, 2}, costs) ==
        3 * 10 + 5 * 1 + 1000 * (2 * 0.5 + 1 * 0.25 + 0.25 * 1) + 2 * 1000 + 1000 * 1.5 * 2);
  // Twice as many ranks as cores, half of the vectors beyond the caches.
  CHECK(predicted(profile, 1000, {4, false, 2}, costs) ==
        3 * 100 * 2 + (2 * 4 + 5) * 2 +
            1000 * ((2 * 1 + 2) * 0.5 + (2 * 0.5 + 1) * 0.25 + (2 * 0.5 + 0.5) * 2 + (2 * 0.125 + 0.25) * 5) +
            2 * 1000 + 1000 * 1.5 * 2);
  // Two nodes of two ranks have a core for each of them.
  const std::vector<uint32_t> nodes{0, 1, 0, 1};
  CHECK(predicted(profile, 1000, {4, false, 2, nodes}, costs) ==
        predicted(profile, 1000, {2, false, 2}, costs));
}

TEST_CASE("model: more bytes, fewer cores or higher costs never take less time") {
  for (const schedule::Schedule& schedule : schedule::catalogue())
    for (const uint32_t world : {1u, 2u, 5u, 8u}) {
      const auto profile = profile_of(schedule, {.world = world}, 1, schedule::Publications::no);
      double before = 0;
      for (unsigned size = 0; size < 43; size++) {
        const double ns = predicted(profile, uint64_t(1) << size, {world, false, 4}, tcp_costs);
        REQUIRE(ns >= before);
        REQUIRE(predicted(profile, uint64_t(1) << size, {world, false, 2}, shm_costs) >=
                predicted(profile, uint64_t(1) << size, {world, false, 4}, shm_costs));
        Costs dearer = tcp_costs;
        dearer.beta *= 2;
        dearer.message.own *= 2;
        REQUIRE(predicted(profile, uint64_t(1) << size, {world, false, world}, dearer) >=
                predicted(profile, uint64_t(1) << size, {world, false, world}, tcp_costs));
        before = ns;
      }
    }
}

TEST_CASE("selection: where only rounds cost the fewest win, where only bytes cost the fewest bytes do") {
  for (const uint32_t world : {4u, 8u, 16u}) {
    const Situation situation{world, false, world};
    for (const uint64_t bytes : {64ull, 1ull << 20, 1ull << 30}) {
      CAPTURE(bytes);
      CHECK(chosen(Operation::all_reduce, bytes, situation, only_rounds) == Algorithm::one_shot);
      CHECK(chosen(Operation::reduce, bytes, situation, only_rounds) == Algorithm::one_shot);
      CHECK(chosen(Operation::broadcast, bytes, situation, only_rounds) == Algorithm::direct);
      for (const Operation operation : {Operation::all_reduce, Operation::broadcast, Operation::reduce}) {
        const auto moved = [&](Algorithm algorithm) {
          const auto& schedule = *schedule::find(operation, algorithm);
          return profile_of(schedule, {.world = world}, 1, schedule::Publications::no).busiest.bytes;
        };
        const Algorithm algorithm = chosen(operation, bytes, situation, only_bytes);
        for (const schedule::Schedule& other : schedule::catalogue())
          if (other.operation == operation && other.algorithm != Algorithm::hierarchical)
            CHECK(moved(algorithm) <= moved(other.algorithm) * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("selection: rows of the table, with the costs as they were measured") {
  const auto shm = [](Operation operation, uint32_t world, uint64_t bytes) {
    return chosen(operation, bytes, {world, true, 2}, shm_costs);
  };
  const auto tcp = [](Operation operation, uint32_t world, uint64_t bytes) {
    return chosen(operation, bytes, {world, false, 2}, tcp_costs);
  };
  for (const uint32_t world : {2u, 4u, 8u}) {
    CHECK(shm(Operation::all_reduce, world, 1024) == Algorithm::one_shot);
    CHECK(shm(Operation::all_reduce, world, 1 << 20) == Algorithm::direct);
    CHECK(shm(Operation::all_reduce, world, 64 << 20) == Algorithm::direct);
    CHECK(shm(Operation::broadcast, world, 1 << 20) == Algorithm::direct);
    CHECK(shm(Operation::all_gather, world, 1 << 20) == Algorithm::direct);
    CHECK(shm(Operation::barrier, world, 0) == Algorithm::direct);
  }
  CHECK(tcp(Operation::all_reduce, 2, 1024) == Algorithm::one_shot);
  CHECK(tcp(Operation::all_reduce, 4, 8 << 10) == Algorithm::double_tree);
  CHECK(tcp(Operation::all_reduce, 4, 1 << 20) == Algorithm::direct);
  CHECK(tcp(Operation::all_reduce, 8, 1024) == Algorithm::double_tree);
  CHECK(tcp(Operation::all_reduce, 4, 16 << 20) == Algorithm::ring);
  CHECK(tcp(Operation::all_reduce, 8, 16 << 20) == Algorithm::ring);
  // Partials of narrow types are wider than the data; a maximum needs none.
  const Situation network{4, false, 2};
  CHECK(select(call_of(Operation::all_reduce, 1 << 19, DataType::bf16), network) == Algorithm::direct);
  CHECK(select(call_of(Operation::all_reduce, 8 << 20, DataType::f16, Reduction::max), network) ==
        Algorithm::ring);
}

TEST_CASE("selection: over nodes of several ranks the hierarchical schedules, on one node never") {
  const std::vector<uint32_t> nodes{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  const std::vector<uint32_t> dealt{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  const std::vector<uint32_t> one(16, 7);
  bool used = false;
  for (const auto& map : {nodes, dealt})
    for (const uint64_t bytes : {1ull << 10, 1ull << 16, 1ull << 22, 1ull << 28})
      used |= chosen(Operation::all_reduce, bytes, {16, false, 4, map}, tcp_costs) == Algorithm::hierarchical;
  CHECK(used);
  CHECK(chosen(Operation::all_reduce, 1 << 28, {16, false, 4, dealt}, tcp_costs) == Algorithm::hierarchical);
  for (const Operation operation : every_operation)
    for (const uint64_t bytes : {8ull, 1ull << 16, 1ull << 28})
      CHECK(chosen(operation, bytes, {16, false, 4, one}, tcp_costs) != Algorithm::hierarchical);
}

TEST_CASE("selection: every algorithm of the catalogue can be asked for by its name") {
  for (const schedule::Schedule& schedule : schedule::catalogue()) {
    const auto name = name_of(schedule.algorithm);
    CHECK(std::ranges::find(algorithm_names, name) != algorithm_names.end());
    CHECK(schedule::algorithm_named(name) == schedule.algorithm);
  }
  CHECK(!schedule::algorithm_named("auto"));
}

TEST_CASE("selection: what a call demands comes before what is quickest") {
  const auto call = [](Reduction reduction, bool reproducible) {
    return Call{.operation = Operation::all_reduce,
                .type = DataType::f32,
                .reduction = reduction,
                .count = 1 << 20,
                .reproducible = reproducible};
  };
  CHECK(can_run(call(Reduction::sum, false), Algorithm::ring));
  CHECK_FALSE(can_run(call(Reduction::sum, true), Algorithm::ring));
  CHECK(can_run(call(Reduction::sum, true), Algorithm::halving_doubling));
  CHECK_FALSE(can_run(call(Reduction::weighted_avg, false), Algorithm::halving_doubling));
  CHECK(can_run(call(Reduction::weighted_avg, false), Algorithm::one_shot));
  // Where no order can make a difference, a reproducible call may run what every other may.
  CHECK(can_run(call(Reduction::min, true), Algorithm::ring));
  CHECK_FALSE(can_run(call(Reduction::prod, true), Algorithm::ring));
  CHECK_FALSE(can_run(call(Reduction::avg, true), Algorithm::ring));
  for (const Reduction reduction : {Reduction::sum, Reduction::prod, Reduction::avg, Reduction::bit_and}) {
    Call integers = call(reduction, true), usual = call(reduction, false);
    integers.type = usual.type = DataType::i32;
    CHECK(can_run(integers, Algorithm::ring));
    CHECK(select(integers, {8, false}) == select(usual, {8, false}));
  }
  CHECK_FALSE(can_run(call(Reduction::sum, false), Algorithm::dissemination));
  for (const uint32_t world : {3u, 4u, 8u, 13u})
    for (uint64_t count = 1; count < 1 << 28; count *= 8) {
      Call demanding = call(Reduction::sum, true);
      demanding.count = count;
      CHECK(schedule::find(Operation::all_reduce, select(demanding, {world, false}))->canonical);
    }
  CHECK(select(call(Reduction::premul_sum, false), {4, false}) == Algorithm::direct);
}

TEST_CASE("tuning: a table comes back as it was written, and the first line that is large enough counts") {
  const Tuning table({4, "tcp"}, {{Operation::all_reduce, 16384, Algorithm::one_shot},
                                  {Operation::all_reduce, UINT64_MAX, Algorithm::double_tree},
                                  {Operation::barrier, UINT64_MAX, Algorithm::dissemination}});
  CHECK(table.text() ==
        "# rondo tuning: 4 ranks, tcp\nall_reduce 16384 one_shot\n"
        "all_reduce max double_tree\nbarrier max dissemination\n");
  const auto read = Tuning::parse(table.text());
  REQUIRE(read.ok());
  CHECK(read->lines() == table.lines());
  CHECK(read->situation() == table.situation());
  CHECK(read->find(Operation::all_reduce, 16384) == Algorithm::one_shot);
  CHECK(read->find(Operation::all_reduce, 16385) == Algorithm::double_tree);
  CHECK(!read->find(Operation::reduce, 1));
}

TEST_CASE("tuning: a file that says something else is refused, with its line") {
  const std::string head = "# rondo tuning: 4 ranks, tcp\n";
  for (const auto& [text, what] : {std::pair(std::string(), "empty"),
                                   {"all_reduce max ring\n", "line 1"},
                                   {"# rondo tuning: four\n", "line 1"},
                                   {head + "# a comment\n\nall_reduce max\n", "line 4"},
                                   {head + "all_reduce max ring ring\n", "an operation, a size"},
                                   {head + "all_reduce 12k ring\n", "number of bytes"},
                                   {head + "all_reduce -1 ring\n", "number of bytes"},
                                   {head + "gather max ring\n", "no such algorithm"},
                                   {head + "all_reduced max ring\n", "no such operation"}}) {
    const auto read = Tuning::parse(text);
    REQUIRE(!read.ok());
    CHECK(read.error().code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(read.error().message.find(what) != std::string::npos, read.error().message);
  }
}
