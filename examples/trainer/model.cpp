#include "model.hpp"

#include <algorithm>
#include <cassert>

#include "layers/attention.hpp"
#include "layers/embedding.hpp"
#include "layers/gelu.hpp"
#include "layers/layernorm.hpp"
#include "layers/linear.hpp"

namespace trainer {

template <class T>
void Model<T>::resize(const Batch& batch) {
  assert(batch.length() <= shape_.context && batch.tokens.size() == batch.targets.size());
  if (batch.sequences == sequences_ && batch.length() == length_) return;
  sequences_ = batch.sequences;
  length_ = batch.length();
  rows_ = sequences_ * length_;
  const size_t rows = size_t(rows_), narrow = rows * shape_.channels, wide = 4 * narrow;
  const size_t weights = AttentionSize{sequences_, length_, shape_.channels, shape_.heads}.weights();
  blocks_.resize(size_t(shape_.layers));
  for (BlockMemory& block : blocks_) {
    for (auto* each : {&block.xhat1, &block.norm1, &block.joined, &block.middle, &block.xhat2, &block.norm2,
                       &block.output})
      each->resize(narrow);
    for (auto* each : {&block.wide, &block.gate, &block.gelu}) each->resize(wide);
    for (auto* each : {&block.inverse1, &block.inverse2}) each->resize(rows);
    block.qkv.resize(3 * narrow);
    block.weights.resize(weights);
  }
  for (auto* each : {&embedded_, &xhat_, &norm_, &d_.stream, &d_.narrow}) each->resize(narrow);
  inverse_.resize(rows);
  logits_.resize(rows * shape_.symbols);
  d_.wide.resize(wide);
  d_.qkv.resize(3 * narrow);
  d_.weights.resize(size_t(length_) * length_);
}

template <class T>
void Model<T>::forward_block(const T* p, const BlockOffsets& at, const T* x, BlockMemory& m) {
  const int channels = shape_.channels;
  layernorm_forward({rows_, channels}, x, p + at.norm1_gain, p + at.norm1_bias, m.xhat1.data(),
                    m.inverse1.data(), m.norm1.data());
  linear_forward<T>(gemm_, {rows_, channels, 3 * channels}, m.norm1.data(), p + at.qkv_weight,
                    p + at.qkv_bias, nullptr, m.qkv.data());
  attention_forward<T>(gemm_, {sequences_, length_, channels, shape_.heads}, m.qkv.data(), m.weights.data(),
                       m.joined.data());
  linear_forward(gemm_, {rows_, channels, channels}, m.joined.data(), p + at.join_weight, p + at.join_bias, x,
                 m.middle.data());

  layernorm_forward({rows_, channels}, m.middle.data(), p + at.norm2_gain, p + at.norm2_bias, m.xhat2.data(),
                    m.inverse2.data(), m.norm2.data());
  linear_forward<T>(gemm_, {rows_, channels, 4 * channels}, m.norm2.data(), p + at.widen_weight,
                    p + at.widen_bias, nullptr, m.wide.data());
  gelu_forward(m.wide.size(), m.wide.data(), m.gate.data(), m.gelu.data());
  linear_forward<T>(gemm_, {rows_, 4 * channels, channels}, m.gelu.data(), p + at.narrow_weight,
                    p + at.narrow_bias, m.middle.data(), m.output.data());
}

template <class T>
void Model<T>::forward(const T* p, const Batch& batch) {
  resize(batch);
  const int channels = shape_.channels;
  embedding_forward({sequences_, length_, channels}, batch.tokens.data(), p + map_.table, p + map_.position,
                    embedded_.data());
  const T* x = embedded_.data();
  for (size_t i = 0; i < blocks_.size(); i++) {
    forward_block(p, map_.blocks[i], x, blocks_[i]);
    x = blocks_[i].output.data();
  }
  layernorm_forward({rows_, channels}, x, p + map_.norm_gain, p + map_.norm_bias, xhat_.data(),
                    inverse_.data(), norm_.data());
  linear_forward<T>(gemm_, {rows_, channels, shape_.symbols}, norm_.data(), p + map_.head_weight, nullptr,
                    nullptr, logits_.data());
}

// d_.stream comes in as the gradient of the block's output and leaves as that of its input: along the
// residual connections it passes unchanged, and each norm adds what came through its branch.
template <class T>
void Model<T>::backward_block(const T* p, const BlockOffsets& at, const BlockMemory& m, T* g) {
  const int channels = shape_.channels;
  T *stream = d_.stream.data(), *narrow = d_.narrow.data(), *wide = d_.wide.data();
  linear_backward(gemm_, {rows_, 4 * channels, channels}, m.gelu.data(), p + at.narrow_weight, stream, wide,
                  g + at.narrow_weight, g + at.narrow_bias);
  gelu_backward(m.wide.size(), m.wide.data(), m.gate.data(), wide);
  linear_backward(gemm_, {rows_, channels, 4 * channels}, m.norm2.data(), p + at.widen_weight, wide, narrow,
                  g + at.widen_weight, g + at.widen_bias);
  layernorm_backward({rows_, channels}, m.xhat2.data(), m.inverse2.data(), p + at.norm2_gain, narrow, stream,
                     g + at.norm2_gain, g + at.norm2_bias);

  linear_backward(gemm_, {rows_, channels, channels}, m.joined.data(), p + at.join_weight, stream, narrow,
                  g + at.join_weight, g + at.join_bias);
  attention_backward<T>(gemm_, {sequences_, length_, channels, shape_.heads}, m.qkv.data(), m.weights.data(),
                        narrow, d_.qkv.data(), d_.weights.data());
  linear_backward(gemm_, {rows_, channels, 3 * channels}, m.norm1.data(), p + at.qkv_weight, d_.qkv.data(),
                  narrow, g + at.qkv_weight, g + at.qkv_bias);
  layernorm_backward({rows_, channels}, m.xhat1.data(), m.inverse1.data(), p + at.norm1_gain, narrow, stream,
                     g + at.norm1_gain, g + at.norm1_bias);
}

template <class T>
void Model<T>::backward(const T* p, const Batch& batch, T* g, const Progress& progress) {
  const int channels = shape_.channels;
  linear_backward<T>(gemm_, {rows_, channels, shape_.symbols}, norm_.data(), p + map_.head_weight,
                     logits_.data(), d_.narrow.data(), g + map_.head_weight, nullptr);
  std::fill(d_.stream.begin(), d_.stream.end(), T(0));
  layernorm_backward({rows_, channels}, xhat_.data(), inverse_.data(), p + map_.norm_gain, d_.narrow.data(),
                     d_.stream.data(), g + map_.norm_gain, g + map_.norm_bias);
  if (progress) progress(map_.norm_gain);
  for (size_t i = blocks_.size(); i-- > 0;) {
    backward_block(p, map_.blocks[i], blocks_[i], g);
    if (progress) progress(map_.blocks[i].norm1_gain);
  }
  embedding_backward({sequences_, length_, channels}, batch.tokens.data(), d_.stream.data(), g + map_.table,
                     g + map_.position);
}

template <class T>
std::span<const T> Model<T>::logits(std::span<const T> parameters, const Batch& batch) {
  assert(parameters.size() == map_.size());
  forward(parameters.data(), batch);
  return logits_;
}

template <class T>
LossSum Model<T>::loss(std::span<const T> parameters, const Batch& batch) {
  if (batch.sequences == 0) return {};
  logits(parameters, batch);
  return cross_entropy(rows_, shape_.symbols, batch.targets.data(), logits_.data());
}

template <class T>
LossSum Model<T>::loss_and_gradient(std::span<const T> parameters, const Batch& batch, std::span<T> gradients,
                                    const Progress& progress) {
  assert(gradients.size() == map_.size());
  const LossSum sum = loss(parameters, batch);
  if (batch.sequences > 0) backward(parameters.data(), batch, gradients.data(), progress);
  return sum;
}

template class Model<float>;
template class Model<double>;

}  // namespace trainer
