// The gradient of one data-parallel step: every rank adds the gradients of its micro-batches, all ranks add their
// sums, and each divides by the number of targets they had together.
//
//   rank 0   micro-batch 0, micro-batch 1  \                                                    .
//   rank 1   micro-batch 2, micro-batch 3  -> sum over ranks -> / targets -> the same mean gradient everywhere
//
// Both sums are over canonical pairwise trees, ((0 + 1) + (2 + 3)) + ..., the one over ranks where Rondo's
// algorithm has that order (docs/numerics.md). If so, then N ranks with M micro-batches, M a power of two, compute
// the very bits of one rank with N * M.
//
// The sum over ranks is started bucket by bucket, while the last micro-batch's backward goes on. Parameters
// stand in the order of forward, so backward completes the gradient from its end to its start, and one number,
// the watermark, says which buckets may go:
//
//   | extras, bucket 0 |  bucket 1  |  bucket 2  |  bucket 3  |
//                             ^ complete from here on: 3 and 2 are under way
//
// What else travels (the loss, the number of targets, a wish to stop) stands in front, as it is known last.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "layers/cross_entropy.hpp"
#include "rank_sum.hpp"

namespace trainer {

/// What a step comes to, over all ranks.
struct StepMean {
  double loss = 0;     ///< mean over all targets
  double targets = 0;  ///< how many there were
  bool stop = false;   ///< some rank asked to stop: all do
  /// In which this rank did nothing but wait for communication; waiting for slower ranks is part of it, what
  /// went on while it computed is not.
  std::chrono::duration<double> waited{};
};

template <class T>
class StepGradient {
 public:
  /// `buckets`: the first parameter of each, rising, from 0.
  StepGradient(size_t parameters, std::vector<size_t> buckets);

  /// A step, in this order: begin, then next and end for each micro-batch, then mean.
  void begin(uint32_t micro_batches, RankSum<T>& sum, bool stop = false);
  /// Where to add the next micro-batch's gradient: zeros.
  std::span<T> next();
  /// That gradient is complete from parameter `first` on. For backward to call as it goes, `first` falling.
  void complete(size_t first);
  /// It is complete, and this was its loss.
  void end(const LossSum& loss);
  /// Waits for the other ranks. Leaves the mean gradient in values().
  rondo::Result<StepMean> mean();

  std::span<T> values() { return std::span<T>(total_.span()).subspan(front); }

 private:
  // One cache line, so that the gradient behind it is aligned too.
  static constexpr size_t front = 64 / sizeof(T);
  enum Extra : size_t { loss_at, targets_at, stop_at };

  std::span<T> part(uint32_t number);
  void complete_elements(size_t first);

  // What the micro-batches so far have come to, by subtrees: element 0 is total_, which travels; the others are
  // needed only with several micro-batches.
  Buffer<T> total_;
  std::vector<std::vector<T>> more_;
  std::vector<size_t> buckets_;  // their first elements

  RankSum<T>* sum_ = nullptr;
  uint32_t micro_batches_ = 0, index_ = 0;  // index_: of the micro-batch under way
  bool stop_ = false;
  size_t watermark_ = 0, waiting_ = 0;  // waiting_: buckets not yet started
};

/// `count` buckets of nearly equal size, or fewer where there are not that many parameters.
std::vector<size_t> even_buckets(size_t parameters, uint32_t count);

}  // namespace trainer
