// The law of data parallelism for the perceptron: whatever the number of ranks, an epoch visits the same samples and
// learns the same from them. Ranks are threads, on generated digits.
#include <doctest/doctest.h>

#include <mutex>
#include <vector>

#include "learner.hpp"
#include "ranks.hpp"

using namespace mlp;

namespace {

const Images& train() {
  static const Images images = generate(333, 1);  // with batches of 64, the last has 13
  return images;
}
const Images& test() {
  static const Images images = generate(101, 2);
  return images;
}

struct Outcome {
  std::vector<double> losses;  // of each epoch
  double accuracy = 0;
  std::vector<float> parameters;
  bool operator==(const Outcome&) const = default;
};

Outcome one_rank(rondo::Communicator& communicator, uint32_t micro_batches) {
  Outcome outcome;
  const Settings settings{.rank = communicator.rank(),
                          .world = communicator.world(),
                          .micro_batches = micro_batches,
                          .epochs = 2};
  Learner<float> learner(Network<float>({28 * 28, 24, 10}, trainer::gemm_reference<float>), settings);
  trainer::CommunicatorSum<float> sum(communicator);
  trainer::CommunicatorSum<double> right(communicator);
  for (uint64_t number = 0; number < settings.epochs; number++) {
    const auto epoch = learner.epoch(train(), number, sum);
    REQUIRE(epoch.ok());
    outcome.losses.push_back(epoch->loss);
  }
  const auto accuracy = learner.accuracy(test(), right);
  REQUIRE(accuracy.ok());
  outcome.accuracy = *accuracy;
  outcome.parameters.assign(learner.parameters().begin(), learner.parameters().end());
  return outcome;
}

// What all ranks have come to.
Outcome outcome(uint32_t world, uint32_t micro_batches, const std::string& algorithm) {
  auto options = rondo::test::options_of_ranks(world);
  for (auto& own : options) own.algorithm = algorithm;
  train(), test();
  std::vector<Outcome> all(world);
  rondo::test::on_ranks(options, [&](rondo::Communicator& communicator) {
    all[communicator.rank()] = one_rank(communicator, micro_batches);
  });
  for (const Outcome& each : all) CHECK(each == all[0]);
  return all[0];
}

}  // namespace

TEST_CASE("mlp law: 1, 2 and 4 ranks with the same batch lose the same") {
  const auto alone = outcome(1, 1, "auto");
  CHECK(alone.losses[1] < alone.losses[0]);
  for (const uint32_t world : {2u, 3u, 4u}) {
    CAPTURE(world);
    const auto several = outcome(world, 1, "ring");
    for (size_t epoch = 0; epoch < 2; epoch++)
      CHECK(several.losses[epoch] == doctest::Approx(alone.losses[epoch]).epsilon(1e-4));
  }
}

TEST_CASE("mlp law: with sums over ranks in tree order, M a power of two, all is the same bits") {
  const auto alone = outcome(1, 8, "auto");
  CHECK(outcome(2, 4, "direct") == alone);
  CHECK(outcome(4, 2, "direct") == alone);
  CHECK(outcome(8, 1, "direct") == alone);
  CHECK(outcome(2, 4, "ring") == alone);  // a ring of two has no other order
  CHECK(outcome(3, 4, "direct") == outcome(1, 12, "auto"));
  CHECK(outcome(4, 2, "ring") != alone);  // the check is not blind
}
