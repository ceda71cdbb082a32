// A byte-level GPT decoder: embedding, blocks, a final norm, and a head that is not tied to the embedding.
//
//   tokens -> embedding -> [ x += join(attention(qkv(norm1(x))));  x += narrow(gelu(widen(norm2(x)))) ] x
//   layers
//          -> norm -> head -> cross entropy
//
// The model holds activations only. Parameters and gradients are flat buffers of the caller's, see
// parameters.hpp.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gemm.hpp"
#include "layers/cross_entropy.hpp"
#include "parameters.hpp"

namespace trainer {

/// `sequences` rows of tokens, equally long, and what should follow each token (or `no_target`).
struct Batch {
  int sequences = 0;
  std::vector<int32_t> tokens, targets;
  int length() const { return sequences ? int(tokens.size()) / sequences : 0; }
};

/// Told by backward as it goes that the gradient is complete from parameter `first` on; `first` falls. The last
/// word, 0, is the caller's to say.
using Progress = std::function<void(size_t first)>;

template <class T>
class Model {
 public:
  Model(const ModelShape& shape, Gemm<T> gemm) : shape_(shape), map_(shape), gemm_(gemm) {}
  const ModelShape& shape() const { return shape_; }
  const ParameterMap& map() const { return map_; }

  /// The logits [rows, symbols] that follow each token; valid until the next call.
  std::span<const T> logits(std::span<const T> parameters, const Batch& batch);
  /// The sum of the batch's losses.
  LossSum loss(std::span<const T> parameters, const Batch& batch);
  /// The same, and adds its gradient to `gradients`.
  LossSum loss_and_gradient(std::span<const T> parameters, const Batch& batch, std::span<T> gradients,
                            const Progress& progress = {});

 private:
  // What a block's backward needs of its forward. `middle` is the stream between attention and the wide part.
  struct BlockMemory {
    std::vector<T> xhat1, inverse1, norm1, qkv, weights, joined, middle, xhat2, inverse2, norm2, wide, gate,
        gelu, output;
  };
  struct Gradient {
    std::vector<T> stream, narrow, wide, qkv, weights;
  };

  void resize(const Batch& batch);
  void forward(const T* parameters, const Batch& batch);
  void forward_block(const T* parameters, const BlockOffsets& at, const T* x, BlockMemory& memory);
  void backward(const T* parameters, const Batch& batch, T* gradients, const Progress& progress);
  void backward_block(const T* parameters, const BlockOffsets& at, const BlockMemory& memory, T* gradients);

  const ModelShape shape_;
  const ParameterMap map_;
  const Gemm<T> gemm_;
  int sequences_ = 0, length_ = 0, rows_ = 0;
  std::vector<T> embedded_, xhat_, inverse_, norm_, logits_;
  std::vector<BlockMemory> blocks_;
  Gradient d_;
};

}  // namespace trainer
