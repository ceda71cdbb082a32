// Where each tensor lies in the one flat parameter buffer (and at the same place in the gradient buffer).
// Tensors stand in the order in which forward uses them, so backward completes the gradient from the end to
// the start.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

/// Shape of a model. `symbols` is the alphabet: bytes.
struct ModelShape {
  int layers = 2, channels = 64, heads = 4, context = 128;
  static constexpr int symbols = 256;
};

enum class Role : uint8_t { embedding, matrix, residual_matrix, head, gain, bias };

struct Tensor {
  std::string name;
  Role role;
  int rows, columns;  // a vector has one row
  size_t offset;
  size_t size() const { return size_t(rows) * columns; }
};

/// Offsets of one transformer block's tensors.
struct BlockOffsets {
  size_t norm1_gain, norm1_bias, qkv_weight, qkv_bias, join_weight, join_bias;
  size_t norm2_gain, norm2_bias, widen_weight, widen_bias, narrow_weight, narrow_bias;
};

class ParameterMap {
 public:
  explicit ParameterMap(const ModelShape& shape);
  size_t size() const { return size_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

  size_t table, position, norm_gain, norm_bias, head_weight;
  std::vector<BlockOffsets> blocks;

 private:
  size_t add(const std::string& name, Role role, int rows, int columns);
  BlockOffsets add_block(const std::string& prefix, int channels);

  std::vector<Tensor> tensors_;
  size_t size_ = 0;
};

/// The values training starts from: a pure function of the shape and the seed. Matrices are normal with the
/// standard deviation of their fan-in; those that write into the residual stream are smaller the more of them
/// there are.
template <class T>
std::vector<T> initial_parameters(const ModelShape& shape, uint64_t seed);

}  // namespace trainer
