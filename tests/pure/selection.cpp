#include "engine/selection.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/environment.hpp"
#include "engine/tuning.hpp"
#include "schedule/catalogue.hpp"

using namespace rondo;
using namespace rondo::engine;
using schedule::Algorithm;
using schedule::Operation;

namespace {

Algorithm chosen(Operation operation, uint64_t count, DataType type, const Situation& situation,
                 Reduction reduction = Reduction::sum) {
  return select({.operation = operation, .type = type, .reduction = reduction, .count = count}, situation);
}

}  // namespace

TEST_CASE("selection: whatever it chooses exists") {
  for (const Operation operation :
       {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather, Operation::broadcast,
        Operation::barrier, Operation::reduce, Operation::gather, Operation::scatter, Operation::all_to_all})
    for (const DataType type : all_data_types)
      for (const uint32_t world : {1u, 2u, 3u, 64u, 1000u})
        for (const bool publishes : {false, true})
          for (const uint64_t count : {0ull, 1ull, 1000ull, 1ull << 20, 1ull << 40})
            CHECK(schedule::find(operation, chosen(operation, count, type, {world, publishes})) != nullptr);
}

TEST_CASE("selection: every algorithm of the catalogue can be asked for by its name") {
  for (const schedule::Schedule& schedule : schedule::catalogue()) {
    const auto name = name_of(schedule.algorithm);
    CHECK(std::ranges::find(algorithm_names, name) != algorithm_names.end());
    CHECK(schedule::algorithm_named(name) == schedule.algorithm);
  }
  CHECK(!schedule::algorithm_named("auto"));
}

TEST_CASE("selection: tiny vectors in one round, narrow types where no partial travels") {
  const Situation network{4, false}, memory{4, true};
  for (const Situation& situation : {network, memory})
    CHECK(chosen(Operation::all_reduce, 2, DataType::f32, situation) == Algorithm::one_shot);
  CHECK(chosen(Operation::all_reduce, 1 << 20, DataType::f32, network) == Algorithm::ring);
  CHECK(chosen(Operation::all_reduce, 1 << 15, DataType::f32, network) == Algorithm::halving_doubling);
  CHECK(chosen(Operation::all_reduce, 1 << 15, DataType::f32, {6, false}) == Algorithm::ring);
  CHECK(chosen(Operation::all_reduce, 1 << 20, DataType::f32, memory) == Algorithm::direct);
  CHECK(chosen(Operation::all_reduce, 1 << 20, DataType::bf16, network) == Algorithm::direct);
  // A maximum needs no wider accumulator, an average of integers does.
  CHECK(chosen(Operation::reduce_scatter, 1 << 20, DataType::f16, network, Reduction::max) ==
        Algorithm::ring);
  CHECK(chosen(Operation::reduce_scatter, 1 << 20, DataType::i32, network, Reduction::avg) ==
        Algorithm::direct);
  // More ranks, more work for one-shot.
  CHECK(chosen(Operation::all_reduce, 2000, DataType::f32, {2, true}) == Algorithm::one_shot);
  CHECK(chosen(Operation::all_reduce, 2000, DataType::f32, {8, true}) == Algorithm::direct);
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
  CHECK_FALSE(can_run(call(Reduction::sum, false), Algorithm::dissemination));
  CHECK(select(call(Reduction::sum, true), {4, false}) == Algorithm::direct);
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
