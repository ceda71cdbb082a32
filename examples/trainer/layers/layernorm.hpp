// y = gain * xhat + bias with xhat = (x - mean) / sqrt(variance + epsilon), over each row of `width` features
// (Ba, Kiros and Hinton 2016).
//
// Backward: with dxhat = dy * gain, and both means over the row,
//   dx = (dxhat - mean(dxhat) - xhat * mean(dxhat * xhat)) / sqrt(variance + epsilon)
//   dgain += sum of dy * xhat over rows      dbias += sum of dy over rows
#pragma once
#include <cmath>

#include "vector_math.hpp"

namespace trainer {

struct NormSize {
  int rows, width;
};

/// Keeps xhat [rows, width] and the inverse deviation of each row for the way back.
template <class T>
void layernorm_forward(const NormSize& size, const T* x, const T* gain, const T* bias, T* xhat,
                       T* inverse_deviation, T* y) {
  constexpr T epsilon = T(1e-5);
  const int width = size.width;
  for (int row = 0; row < size.rows; row++, x += width, xhat += width, y += width) {
    const T mean = sum_of<T>(width, [=](int i) { return x[i]; }) / T(width);
    const T variance = sum_of<T>(width, [=](int i) { return (x[i] - mean) * (x[i] - mean); }) / T(width);
    const T inverse = T(1) / std::sqrt(variance + epsilon);
    for (int i = 0; i < width; i++) {
      const T normal = (x[i] - mean) * inverse;
      xhat[i] = normal;
      y[i] = normal * gain[i] + bias[i];
    }
    inverse_deviation[row] = inverse;
  }
}

/// Adds to dx (the layer sits beside a residual connection), dgain and dbias.
template <class T>
void layernorm_backward(const NormSize& size, const T* xhat, const T* inverse_deviation, const T* gain,
                        const T* dy, T* dx, T* dgain, T* dbias) {
  const int width = size.width;
  for (int row = 0; row < size.rows; row++, xhat += width, dy += width, dx += width) {
    const T mean = sum_of<T>(width, [=](int i) { return dy[i] * gain[i]; }) / T(width);
    const T mean_xhat = sum_of<T>(width, [=](int i) { return dy[i] * gain[i] * xhat[i]; }) / T(width);
    const T inverse = inverse_deviation[row];
    for (int i = 0; i < width; i++) {
      dx[i] += (dy[i] * gain[i] - mean - xhat[i] * mean_xhat) * inverse;
      dgain[i] += dy[i] * xhat[i];
      dbias[i] += dy[i];
    }
  }
}

}  // namespace trainer
