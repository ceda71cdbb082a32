#include "parameters.hpp"

#include <cmath>

#include "random.hpp"

namespace trainer {

ParameterMap::ParameterMap(const ModelShape& shape) {
  const int channels = shape.channels;
  table = add("table", Role::embedding, shape.symbols, channels);
  position = add("position", Role::embedding, shape.context, channels);
  for (int i = 0; i < shape.layers; i++)
    blocks.push_back(add_block("block" + std::to_string(i) + ".", channels));
  norm_gain = add("norm.gain", Role::gain, 1, channels);
  norm_bias = add("norm.bias", Role::bias, 1, channels);
  head_weight = add("head.weight", Role::head, channels, shape.symbols);
}

BlockOffsets ParameterMap::add_block(const std::string& prefix, int channels) {
  BlockOffsets block;
  block.norm1_gain = add(prefix + "norm1.gain", Role::gain, 1, channels);
  block.norm1_bias = add(prefix + "norm1.bias", Role::bias, 1, channels);
  block.qkv_weight = add(prefix + "qkv.weight", Role::matrix, channels, 3 * channels);
  block.qkv_bias = add(prefix + "qkv.bias", Role::bias, 1, 3 * channels);
  block.join_weight = add(prefix + "join.weight", Role::residual_matrix, channels, channels);
  block.join_bias = add(prefix + "join.bias", Role::bias, 1, channels);
  block.norm2_gain = add(prefix + "norm2.gain", Role::gain, 1, channels);
  block.norm2_bias = add(prefix + "norm2.bias", Role::bias, 1, channels);
  block.widen_weight = add(prefix + "widen.weight", Role::matrix, channels, 4 * channels);
  block.widen_bias = add(prefix + "widen.bias", Role::bias, 1, 4 * channels);
  block.narrow_weight = add(prefix + "narrow.weight", Role::residual_matrix, 4 * channels, channels);
  block.narrow_bias = add(prefix + "narrow.bias", Role::bias, 1, channels);
  return block;
}

size_t ParameterMap::add(const std::string& name, Role role, int rows, int columns) {
  tensors_.push_back({name, role, rows, columns, size_});
  const size_t offset = size_;
  size_ += tensors_.back().size();
  return offset;
}

namespace {

double deviation(const Tensor& tensor, int layers) {
  switch (tensor.role) {
    case Role::embedding:
      return 0.1;
    case Role::matrix:
      return 1 / std::sqrt(tensor.rows);
    case Role::residual_matrix:
      return 1 / std::sqrt(tensor.rows) / std::sqrt(2.0 * layers);
    case Role::head:
      return 0.02;
    case Role::gain:
    case Role::bias:
      return 0;
  }
  return 0;
}

}  // namespace

template <class T>
std::vector<T> initial_parameters(const ModelShape& shape, uint64_t seed) {
  const ParameterMap map(shape);
  std::vector<T> values(map.size());
  for (const Tensor& tensor : map.tensors()) {
    const double mean = tensor.role == Role::gain ? 1 : 0, spread = deviation(tensor, shape.layers);
    for (size_t i = tensor.offset; i < tensor.offset + tensor.size(); i++)
      values[i] = T(mean + spread * random_normal({seed, stream::initial_parameters, i}));
  }
  return values;
}

template std::vector<float> initial_parameters(const ModelShape&, uint64_t);
template std::vector<double> initial_parameters(const ModelShape&, uint64_t);

}  // namespace trainer
