// Momentum SGD on the ranks of a job, and the order of the data.
//
// An epoch visits each sample once, in an order that is a pure function of (seed, epoch). A step takes the next
// `batch` of that order, the last step of an epoch what is left; its samples are dealt to ranks x micro-batches in
// order, evenly or nearly so. The mean is over samples, so a rank with fewer, or none, changes nothing about the
// result, and neither ranks nor micro-batches come into what is learned.
#pragma once
#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "images.hpp"
#include "learning_rate.hpp"
#include "network.hpp"
#include "rondo/types.hpp"
#include "step_gradient.hpp"

namespace mlp {

using trainer::RankSum;

struct Settings {
  rondo::Rank rank = 0;
  uint32_t world = 1, micro_batches = 1;
  uint64_t seed = 1, epochs = 3, batch = 64;
  double learning_rate = 0.05, momentum = 0.9;  // the former falls, see LearningRate
};

/// A permutation of 0 .. samples-1.
std::vector<uint32_t> epoch_order(uint64_t seed, uint64_t epoch, uint32_t samples);

struct EpochReport {
  double loss = 0;  ///< mean over its samples, each before the step that learns from it
  std::chrono::duration<double> waited{};  ///< see StepMean
};

template <class T>
class Learner {
 public:
  Learner(Network<T> network, const Settings& settings);
  std::span<const T> parameters() const { return parameters_.span(); }

  rondo::Result<EpochReport> epoch(const Images& images, uint64_t number, RankSum<T>& sum);
  /// The part of `images` that the network names right; the ranks share the work.
  rondo::Result<double> accuracy(const Images& images, RankSum<double>& sum);

 private:
  rondo::Result<trainer::StepMean> step(const Images& images, std::span<const uint32_t> samples, double rate,
                                        RankSum<T>& sum);
  Batch<T> batch_of(const Images& images, std::span<const uint32_t> samples) const;
  uint64_t right_of(const Images& images, std::span<const uint32_t> samples);

  const Settings settings_;
  Network<T> network_;
  trainer::Buffer<T> parameters_;
  trainer::StepGradient<T> gradient_;  // a bucket is a layer
  std::vector<T> velocity_;
};

}  // namespace mlp
