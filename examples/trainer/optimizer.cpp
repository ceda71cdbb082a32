#include "optimizer.hpp"

#include <cmath>

#include "vector_math.hpp"

namespace trainer {

template <class T>
AdamW<T>::AdamW(const ParameterMap& map, const Settings& settings)
    : settings_(settings), tensors_(map.tensors()), m_(map.size()), v_(map.size()) {}

template <class T>
void AdamW<T>::step(double learning_rate, std::span<const T> gradients, std::span<T> parameters) {
  steps_++;
  const T beta1 = T(settings_.beta1), beta2 = T(settings_.beta2), epsilon = T(settings_.epsilon);
  const T correct_m = T(1 / (1 - std::pow(settings_.beta1, double(steps_))));
  const T correct_v = T(1 / (1 - std::pow(settings_.beta2, double(steps_))));
  for (const Tensor& tensor : tensors_) {
    const bool decays = tensor.rows > 1 && tensor.role != Role::embedding;
    const T keep = decays ? T(1 - learning_rate * settings_.weight_decay) : T(1), rate = T(learning_rate);
    T *m = m_.data() + tensor.offset, *v = v_.data() + tensor.offset,
      *parameter = parameters.data() + tensor.offset;
    const T* gradient = gradients.data() + tensor.offset;
    for (size_t i = 0; i < tensor.size(); i++) {
      m[i] = beta1 * m[i] + (T(1) - beta1) * gradient[i];
      v[i] = beta2 * v[i] + (T(1) - beta2) * gradient[i] * gradient[i];
      parameter[i] =
          keep * parameter[i] - rate * (m[i] * correct_m) / (std::sqrt(v[i] * correct_v) + epsilon);
    }
  }
}

template <class T>
void AdamW<T>::restore(uint64_t steps, std::span<const T> m, std::span<const T> v) {
  steps_ = steps;
  m_.assign(m.begin(), m.end());
  v_.assign(v.begin(), v.end());
}

template <class T>
void sgd_step(double learning_rate, std::span<const T> gradients, std::span<T> parameters) {
  for (size_t i = 0; i < parameters.size(); i++) parameters[i] -= T(learning_rate) * gradients[i];
}

template <class T>
void clip(double limit, std::span<T> gradients) {
  const T* g = gradients.data();
  const double length =
      std::sqrt(sum_of<double>(int(gradients.size()), [=](int i) { return double(g[i]) * double(g[i]); }));
  if (!(length > limit)) return;
  for (T& each : gradients) each *= T(limit / length);
}

template class AdamW<float>;
template class AdamW<double>;
template void sgd_step(double, std::span<const float>, std::span<float>);
template void sgd_step(double, std::span<const double>, std::span<double>);
template void clip(double, std::span<float>);
template void clip(double, std::span<double>);

}  // namespace trainer
