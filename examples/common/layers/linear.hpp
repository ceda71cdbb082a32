// y = x W + b, row by row. x: [rows, inputs], W: [inputs, outputs], b: [outputs] or null, y: [rows, outputs].
//
// Backward, from the gradient dy of the loss with respect to y:
//   dx = dy W^T      dW += x^T dy      db += sum of dy over rows
#pragma once
#include "gemm.hpp"

namespace trainer {

struct LinearSize {
  int rows, inputs, outputs;
};

/// With `residual` (as large as y) it is added: y = residual + x W + b.
template <class T>
void linear_forward(Gemm<T> gemm, const LinearSize& size, const T* x, const T* weight, const T* bias,
                    const T* residual, T* y) {
  const auto [rows, inputs, outputs] = size;
  for (int row = 0; row < rows; row++) {
    T* out = y + size_t(row) * outputs;
    for (int j = 0; j < outputs; j++) out[j] = bias ? bias[j] : T(0);
    if (!residual) continue;
    const T* in = residual + size_t(row) * outputs;
    for (int j = 0; j < outputs; j++) out[j] += in[j];
  }
  gemm(T(1), Matrix<const T>(x, rows, inputs), Matrix<const T>(weight, inputs, outputs), T(1),
       Matrix<T>(y, rows, outputs));
}

/// Overwrites dx (null where nobody needs it), adds to dweight and dbias (null where there is no bias).
template <class T>
void linear_backward(Gemm<T> gemm, const LinearSize& size, const T* x, const T* weight, const T* dy, T* dx,
                     T* dweight, T* dbias) {
  const auto [rows, inputs, outputs] = size;
  const Matrix<const T> gradient(dy, rows, outputs);
  if (dx)
    gemm(T(1), gradient, Matrix<const T>(weight, inputs, outputs).transpose(), T(0),
         Matrix<T>(dx, rows, inputs));
  gemm(T(1), Matrix<const T>(x, rows, inputs).transpose(), gradient, T(1),
       Matrix<T>(dweight, inputs, outputs));
  if (!dbias) return;
  for (int row = 0; row < rows; row++)
    for (int j = 0; j < outputs; j++) dbias[j] += dy[size_t(row) * outputs + j];
}

}  // namespace trainer
