// The law of data parallelism: however the sequences of a step are dealt to ranks and micro-batches, the
// gradient is the same. Ranks are threads, each with a communicator of its own, on the generated text.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gemm.hpp"
#include "optimizer.hpp"
#include "rondo/rondo.hpp"
#include "step.hpp"
#include "text.hpp"

using namespace trainer;

namespace {

const ModelShape shape{2, 32, 4, 64};
constexpr uint64_t sequences = 16;
constexpr uint32_t buckets = 5;

const Corpus& corpus() {
  static const Corpus instance = *Corpus::create(Text{"generated", generate_text(200000), ""}, shape.context);
  return instance;
}

// What a rank does to get the gradient of step 0: the trainer's way, or a wrong one.
template <class T>
using Way = std::function<rondo::Result<void>(Model<T>&, std::span<const T> parameters, const Share&,
                                              RankSum<T>&, StepGradient<T>&)>;

template <class T>
rondo::Result<void> right(Model<T>& model, std::span<const T> parameters, const Share& share, RankSum<T>& sum,
                          StepGradient<T>& gradient) {
  const auto done = mean_gradient(model, parameters, corpus(), share, 0, false, sum, gradient);
  return done ? rondo::Result<void>() : done.error();
}

// One rank: the gradient, and the parameters after a step of SGD along it.
template <class T>
rondo::Result<std::vector<T>> one_rank(const Share& share, const std::string& job, const Way<T>& way,
                                       const std::string& algorithm) {
  rondo::Options options;
  options.rank = share.rank;
  options.world = share.world;
  options.root = "unix:@" + job;
  options.secret = "the law of data parallelism";
  options.algorithm = algorithm;
  auto communicator = rondo::Communicator::create(options);
  if (!communicator) return communicator.error();
  Model<T> model(shape, gemm_openblas<T>() ? gemm_openblas<T>() : gemm_reference<T>);
  auto parameters = initial_parameters<T>(shape, 1);
  StepGradient<T> gradient(parameters.size(), even_buckets(parameters.size(), buckets));
  CommunicatorSum<T> sum(*communicator);
  if (auto done = way(model, parameters, share, sum, gradient); !done) return done.error();
  sgd_step<T>(0.5, gradient.values(), parameters);
  std::vector<T> result(gradient.values().begin(), gradient.values().end());
  result.insert(result.end(), parameters.begin(), parameters.end());
  return result;
}

// The same on `world` ranks with `micro_batches` each. All of them must hold the same bits, unless that is
// what the way breaks.
template <class T>
std::vector<T> outcome(uint32_t world, uint32_t micro_batches, const Way<T>& way = right<T>,
                       bool same_bits = true, const std::string& algorithm = "ring") {
  static int jobs = 0;
  const std::string job = "rondo-law-" + std::to_string(::getpid()) + "-" + std::to_string(jobs++);
  corpus();
  gemm_openblas<T>();  // loads the library before there are threads
  std::vector<std::optional<rondo::Result<std::vector<T>>>> results(world);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < world; rank++)
    ranks.emplace_back([&, rank] {
      results[rank] = one_rank<T>({rank, world, micro_batches, 1, sequences}, job, way, algorithm);
    });
  for (std::thread& rank : ranks) rank.join();
  for (const auto& result : results)
    if (!result->ok()) FAIL(result->error().message);
  if (same_bits)
    for (const auto& result : results) CHECK(**result == **results[0]);
  return **results[0];
}

// |a - b| / |b| over the gradient (the first half).
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b, size_t first, size_t last) {
  double difference = 0, length = 0;
  for (size_t i = first; i < last; i++) {
    difference += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    length += double(b[i]) * double(b[i]);
  }
  return std::sqrt(difference / length);
}
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  return std::max(distance(a, b, 0, a.size() / 2), distance(a, b, a.size() / 2, a.size()));
}

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-12;

// Mutants: each makes one mistake that has been made in real trainers.

// 50 elements in the middle of each bucket stay this rank's own.
template <class T>
class DroppingSum final : public RankSum<T> {
 public:
  explicit DroppingSum(RankSum<T>& sum) : sum_(sum) {}
  void start(std::span<T> data) override {
    sum_.start(data.first(data.size() / 2));
    sum_.start(data.subspan(data.size() / 2 + 50));
  }
  rondo::Result<void> wait() override { return sum_.wait(); }

 private:
  RankSum<T>& sum_;
};
template <class T>
rondo::Result<void> drops_a_part(Model<T>& model, std::span<const T> parameters, const Share& share,
                                 RankSum<T>& sum, StepGradient<T>& gradient) {
  DroppingSum<T> most(sum);
  return right<T>(model, parameters, share, most, gradient);
}

template <class T>
rondo::Result<void> divides_twice(Model<T>& model, std::span<const T> parameters, const Share& share,
                                  RankSum<T>& sum, StepGradient<T>& gradient) {
  const auto done = right<T>(model, parameters, share, sum, gradient);
  for (T& each : gradient.values()) each /= T(share.world);
  return done;
}

// The mean of the ranks' own means, which is right only while all have equally many tokens.
template <class T>
rondo::Result<void> averages_means(Model<T>& model, std::span<const T> parameters, const Share& share,
                                   RankSum<T>& sum, StepGradient<T>& gradient) {
  NoSum<T> none;
  if (auto own = right<T>(model, parameters, share, none, gradient); !own) return own;
  for (T& each : gradient.values()) each /= T(share.world);
  sum.start(gradient.values());
  return sum.wait();
}

// Synchronises after the micro-batches in `when` instead of after the last.
template <class T>
Way<T> synchronising_after(std::vector<uint32_t> when) {
  return [when](Model<T>& model, std::span<const T> parameters, const Share& share, RankSum<T>& sum,
                StepGradient<T>& gradient) -> rondo::Result<void> {
    gradient.begin(1, sum);
    const auto values = gradient.next();
    for (uint32_t i = 0; i < share.micro_batches; i++) {
      const Batch batch = corpus().training_batch(share.seed, 0, share.sequences_of(i));
      model.loss_and_gradient(parameters, batch, values);
      if (std::find(when.begin(), when.end(), i) == when.end()) continue;
      sum.start(values);
      if (auto done = sum.wait(); !done) return done;
    }
    for (T& each : values) each /= T(sequences * uint64_t(shape.context));
    return {};
  };
}

}  // namespace

TEST_CASE_TEMPLATE("law: (ranks, micro-batches) = (1,4), (2,2), (4,1) give the same gradient", T, float,
                   double) {
  const auto alone = outcome<T>(1, 4);
  CHECK(distance(outcome<T>(2, 2), alone) < tolerance<T>);
  CHECK(distance(outcome<T>(4, 1), alone) < tolerance<T>);
}

TEST_CASE_TEMPLATE("law: with sums over ranks in tree order, M a power of two, it is the same bits", T, float,
                   double) {
  const auto same = [](uint32_t world, uint32_t micro_batches) {
    CAPTURE(world);
    CAPTURE(micro_batches);
    const auto alone = outcome<T>(1, world * micro_batches);
    CHECK(outcome<T>(world, micro_batches, right<T>, true, "direct") == alone);
    if (world == 2) CHECK(outcome<T>(world, micro_batches) == alone);  // a ring of two has no other order
  };
  same(2, 1);
  same(2, 4);
  same(4, 2);
  same(3, 2);  // in all 6, of 2 or 3 sequences each
  same(3, 8);  // and 24, some of which have none
  // The check is not blind: a ring of four has its own order.
  CHECK(outcome<T>(4, 2) != outcome<T>(1, 8));
}

TEST_CASE_TEMPLATE("law: also when ranks have unequal shares, or none", T, float, double) {
  const auto alone = outcome<T>(1, 4);
  CHECK(distance(outcome<T>(3, 2), alone) < tolerance<T>);
  CHECK(distance(outcome<T>(4, 8), alone) < tolerance<T>);
}

TEST_CASE_TEMPLATE("law: breaches are found", T, float, double) {
  const auto alone = outcome<T>(1, 4);
  const auto breach = [&](uint32_t world, uint32_t micro_batches, const Way<T>& way, bool same_bits) {
    return distance(outcome<T>(world, micro_batches, way, same_bits), alone);
  };
  CHECK(breach(2, 2, synchronising_after<T>({1}), true) < tolerance<T>);  // the hand-made loop, done right
  CHECK(breach(2, 2, synchronising_after<T>({0}), false) > 1e-3);
  CHECK(breach(2, 2, synchronising_after<T>({0, 1}), true) > 1e-3);
  CHECK(breach(2, 2, drops_a_part<T>, false) > 1e-3);
  CHECK(breach(4, 1, divides_twice<T>, true) > 1e-3);
  CHECK(breach(3, 1, averages_means<T>, true) > 1e-3);
}
