// A multi-layer perceptron: linear layers with a ReLU between each two, and cross entropy at the end.
//
//   pixels [rows, 784] -> linear 128 -> relu -> linear 10 -> cross entropy
//
// Parameters and gradients are flat buffers of the caller's: each layer's weights [inputs, outputs], then its bias,
// in the order of forward. So backward completes the gradient from its end to its start, layer by layer.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "gemm.hpp"
#include "layers/cross_entropy.hpp"

namespace mlp {

using trainer::Gemm;
using trainer::LossSum;

template <class T>
struct Batch {
  std::vector<T> pixels;  // [rows, inputs]
  std::vector<int32_t> labels;
  int rows() const { return int(labels.size()); }
};

/// Told by backward that the gradient is complete from parameter `first` on; `first` falls, to 0.
using Progress = std::function<void(size_t first)>;

template <class T>
class Network {
 public:
  /// `widths`: the inputs, those of each hidden layer, the classes.
  Network(std::vector<int> widths, Gemm<T> gemm);
  size_t parameters() const { return size_; }
  /// The first parameter of each layer.
  const std::vector<size_t>& layers() const { return offsets_; }
  int inputs() const { return widths_.front(); }
  int classes() const { return widths_.back(); }

  /// Normal with the deviation of He et al. 2015 for ReLU; biases are 0. A pure function of the seed.
  std::vector<T> initial(uint64_t seed) const;
  /// The logits [rows, classes]; valid until the next call.
  std::span<const T> forward(std::span<const T> parameters, const Batch<T>& batch);
  /// The sum of the batch's losses; adds its gradient to `gradient`.
  LossSum loss_and_gradient(std::span<const T> parameters, const Batch<T>& batch, std::span<T> gradient,
                            const Progress& progress = {});

 private:
  const std::vector<int> widths_;
  const Gemm<T> gemm_;
  std::vector<size_t> offsets_;
  size_t size_ = 0;
  std::vector<std::vector<T>> outputs_, slopes_;  // of each layer; slopes_: of the loss along its outputs
};

}  // namespace mlp
