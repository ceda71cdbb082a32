// One data-parallel step: every rank sums the token gradients of its micro-batches, all ranks add their sums
// with one all-reduce, and each divides by the number of tokens they had together.
//
//   rank 0   micro-batch 0 -> micro-batch 1 \                                   .
//   rank 1   micro-batch 2 -> micro-batch 3 -> all_reduce(sum) -> / tokens -> the same gradient everywhere
//
// The sequences of a step are dealt to ranks x micro-batches in order, evenly or nearly so; the mean is over
// tokens, so a rank with fewer, or none, changes nothing about the result.
#pragma once
#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "corpus.hpp"
#include "model.hpp"
#include "rondo/result.hpp"

namespace trainer {

/// Adds `data` up over all ranks, in place.
template <class T>
using AllReduce = std::function<rondo::Result<void>(std::span<T> data)>;

/// How a step's sequences are shared out.
struct Share {
  uint32_t rank = 0, world = 1, micro_batches = 1;
  uint64_t seed = 1, sequences = 32;
  /// The sequences of this rank's micro-batch `i`.
  rondo::Extent sequences_of(uint32_t i) const {
    return rondo::shard(sequences, world * micro_batches, rank * micro_batches + i);
  }
};

/// The flat gradient and, behind it, what travels with it in the same all-reduce.
template <class T>
class GradientBuffer {
 public:
  explicit GradientBuffer(size_t parameters) : values_(parameters + extras) {}
  std::span<T> gradient() { return std::span(values_).first(values_.size() - extras); }
  std::span<T> all() { return values_; }
  T& loss() { return values_[values_.size() - 3]; }
  T& tokens() { return values_[values_.size() - 2]; }
  T& stop() { return values_[values_.size() - 1]; }  ///< how many ranks want to stop after this step

 private:
  static constexpr size_t extras = 3;
  std::vector<T> values_;
};

struct StepReport {
  double loss = 0;                                ///< mean over the tokens of all ranks
  bool stop = false;                              ///< some rank asked to stop: all do
  std::chrono::duration<double> communication{};  ///< in all_reduce, waiting for slower ranks included
};

/// Leaves the mean gradient of step `step` in `buffer`, on every rank.
template <class T>
rondo::Result<StepReport> mean_gradient(Model<T>& model, std::span<const T> parameters, const Corpus& corpus,
                                        const Share& share, uint64_t step, bool stop,
                                        const AllReduce<T>& all_reduce, GradientBuffer<T>& buffer);

/// The mean loss over all held-out windows, which the ranks share.
template <class T>
rondo::Result<double> held_out_loss(Model<T>& model, std::span<const T> parameters, const Corpus& corpus,
                                    const Share& share, const AllReduce<double>& all_reduce);

}  // namespace trainer
