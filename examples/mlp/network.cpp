#include "network.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "layers/linear.hpp"
#include "random.hpp"

namespace mlp {

template <class T>
Network<T>::Network(std::vector<int> widths, Gemm<T> gemm) : widths_(std::move(widths)), gemm_(gemm) {
  for (size_t i = 0; i + 1 < widths_.size(); i++) {
    offsets_.push_back(size_);
    size_ += size_t(widths_[i] + 1) * widths_[i + 1];
  }
  outputs_.resize(offsets_.size());
  slopes_.resize(offsets_.size());
}

template <class T>
std::vector<T> Network<T>::initial(uint64_t seed) const {
  std::vector<T> values(size_);
  for (size_t layer = 0; layer < offsets_.size(); layer++) {
    const double deviation = std::sqrt(2.0 / widths_[layer]);
    const size_t first = offsets_[layer], weights = size_t(widths_[layer]) * widths_[layer + 1];
    for (size_t i = first; i < first + weights; i++)
      values[i] = T(deviation * trainer::random_normal({seed, trainer::stream::initial_parameters, i}));
  }
  return values;
}

template <class T>
std::span<const T> Network<T>::forward(std::span<const T> parameters, const Batch<T>& batch) {
  const T* x = batch.pixels.data();
  for (size_t layer = 0; layer < offsets_.size(); layer++) {
    const int inputs = widths_[layer], outputs = widths_[layer + 1];
    const T* weight = parameters.data() + offsets_[layer];
    auto& y = outputs_[layer];
    y.resize(size_t(batch.rows()) * outputs);
    trainer::linear_forward<T>(gemm_, {batch.rows(), inputs, outputs}, x, weight,
                               weight + size_t(inputs) * outputs, nullptr, y.data());
    const bool last = layer + 1 == offsets_.size();
    if (!last)
      for (T& each : y) each = std::max(each, T(0));
    x = y.data();
  }
  return outputs_.back();
}

template <class T>
LossSum Network<T>::loss_and_gradient(std::span<const T> parameters, const Batch<T>& batch,
                                      std::span<T> gradient, const Progress& progress) {
  assert(parameters.size() == size_ && gradient.size() == size_);
  if (batch.rows() == 0) return {};
  forward(parameters, batch);
  slopes_.back() = outputs_.back();
  const LossSum sum =
      trainer::cross_entropy(batch.rows(), classes(), batch.labels.data(), slopes_.back().data());

  for (size_t layer = offsets_.size(); layer-- > 0;) {
    const int inputs = widths_[layer], outputs = widths_[layer + 1];
    const size_t weight = offsets_[layer], bias = weight + size_t(inputs) * outputs;
    const T* x = layer == 0 ? batch.pixels.data() : outputs_[layer - 1].data();
    T* dx = nullptr;  // nobody needs the slope along the pixels
    if (layer > 0) {
      slopes_[layer - 1].resize(outputs_[layer - 1].size());
      dx = slopes_[layer - 1].data();
    }
    trainer::linear_backward<T>(gemm_, {batch.rows(), inputs, outputs}, x, parameters.data() + weight,
                                slopes_[layer].data(), dx, gradient.data() + weight, gradient.data() + bias);
    if (progress) progress(weight);
    if (layer > 0)  // a ReLU that gave 0 passes nothing on
      for (size_t i = 0; i < slopes_[layer - 1].size(); i++)
        if (x[i] == T(0)) dx[i] = T(0);
  }
  return sum;
}

template class Network<float>;
template class Network<double>;

}  // namespace mlp
