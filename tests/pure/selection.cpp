#include "engine/selection.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/environment.hpp"
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
