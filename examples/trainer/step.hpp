// What a rank does in a step, and how it is evaluated. The sequences of a step are dealt to ranks x micro-batches in
// order, evenly or nearly so; the mean is over tokens, so a rank with fewer, or none, changes nothing about the
// result.
#pragma once
#include <span>

#include "corpus.hpp"
#include "model.hpp"
#include "rondo/result.hpp"
#include "step_gradient.hpp"

namespace trainer {

/// How a step's sequences are shared out.
struct Share {
  uint32_t rank = 0, world = 1, micro_batches = 1;
  uint64_t seed = 1, sequences = 32;
  /// The sequences of this rank's micro-batch `i`.
  rondo::Extent sequences_of(uint32_t i) const {
    return rondo::shard(sequences, world * micro_batches, rank * micro_batches + i);
  }
};

/// Leaves the mean gradient of step `step` in `gradient`, on every rank.
template <class T>
rondo::Result<StepMean> mean_gradient(Model<T>& model, std::span<const T> parameters, const Corpus& corpus,
                                      const Share& share, uint64_t step, bool stop, RankSum<T>& sum,
                                      StepGradient<T>& gradient);

/// The mean loss over all held-out windows, which the ranks share.
template <class T>
rondo::Result<double> held_out_loss(Model<T>& model, std::span<const T> parameters, const Corpus& corpus,
                                    const Share& share, RankSum<double>& sum);

}  // namespace trainer
