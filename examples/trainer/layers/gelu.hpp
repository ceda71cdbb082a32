// The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel 2016). Since (1 + tanh(u)) / 2 is the
// logistic function of 2u,
//   gelu(x) = x s(x),  s(x) = 1 / (1 + exp(-2u)),  u = sqrt(2/pi) (x + 0.044715 x^3)
//   gelu'(x) = s + x s (1 - s) 2u'
#pragma once
#include <cstddef>

#include "vector_math.hpp"

namespace trainer {

template <class T>
inline constexpr T gelu_slope = T(1.5957691216057308);  // 2 sqrt(2/pi)
template <class T>
inline constexpr T gelu_cubic = T(0.044715);

/// Keeps the gate s(x) for the way back.
template <class T>
void gelu_forward(size_t count, const T* x, T* gate, T* y) {
  for (size_t i = 0; i < count; i++) {
    const T u2 = gelu_slope<T> * (x[i] + gelu_cubic<T> * x[i] * x[i] * x[i]);
    const T s = T(1) / (T(1) + exponential(-u2));
    gate[i] = s;
    y[i] = x[i] * s;
  }
}

/// Turns dy into dx where it stands.
template <class T>
void gelu_backward(size_t count, const T* x, const T* gate, T* gradient) {
  for (size_t i = 0; i < count; i++) {
    const T slope = gelu_slope<T> * (T(1) + T(3) * gelu_cubic<T> * x[i] * x[i]);
    gradient[i] *= gate[i] + x[i] * gate[i] * (T(1) - gate[i]) * slope;
  }
}

}  // namespace trainer
