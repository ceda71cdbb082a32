// Optimizers over the flat parameter buffer.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "learning_rate.hpp"
#include "parameters.hpp"

namespace trainer {

/// AdamW (Loshchilov and Hutter 2019): running means m of the gradient and v of its square, both corrected
/// for their start at 0, and a weight decay beside the gradient, of matrices only.
template <class T>
class AdamW {
 public:
  struct Settings {
    double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8, weight_decay = 0.01;
  };
  AdamW(const ParameterMap& map, const Settings& settings);
  void step(double learning_rate, std::span<const T> gradients, std::span<T> parameters);

  /// All that it remembers, beside the number of steps.
  std::span<const T> m() const { return m_; }
  std::span<const T> v() const { return v_; }
  void restore(uint64_t steps, std::span<const T> m, std::span<const T> v);

 private:
  const Settings settings_;
  std::vector<Tensor> tensors_;
  std::vector<T> m_, v_;
  uint64_t steps_ = 0;
};

/// Plain gradient descent.
template <class T>
void sgd_step(double learning_rate, std::span<const T> gradients, std::span<T> parameters);

/// Scales the gradient down to length `limit` where it is longer. Its length is summed in double in one fixed
/// order, so ranks that hold the same bits do the same.
template <class T>
void clip(double limit, std::span<T> gradients);

}  // namespace trainer
