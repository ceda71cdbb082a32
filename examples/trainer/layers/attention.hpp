// Causal multi-head attention (Vaswani et al. 2017). A row of qkv holds a token's queries, keys and values,
// each `width` numbers, head after head. For each sequence and head, with D = width / heads:
//
//   S = Q K^T / sqrt(D)     P = softmax of each row of S over the places up to its own     Y = P V
//
//            keys
//          1 . . .    A row of P looks at its own place and those before it; the rest is 0.
//  queries 1 1 . .
//          1 1 1 .
//
// Backward:  dV = P^T dY    dP = dY V^T    dS = P * (dP - rowsum(dP * P)) / sqrt(D)    dQ = dS K    dK = dS^T
// Q
#pragma once
#include <cmath>
#include <cstddef>

#include "gemm.hpp"
#include "vector_math.hpp"

namespace trainer {

struct AttentionSize {
  int sequences, length, width, heads;
  size_t weights() const { return size_t(sequences) * heads * length * length; }  // elements of P
};

/// One head's slices of one sequence's rows.
template <class T>
struct Head {
  Matrix<T> q, k, v;
};
template <class T>
Head<T> head_of(const AttentionSize& size, T* qkv, int sequence, int head) {
  const int depth = size.width / size.heads, stride = 3 * size.width;
  T* first = qkv + size_t(sequence) * size.length * stride + size_t(head) * depth;
  const auto part = [&](int i) {
    return Matrix<T>(first + size_t(i) * size.width, size.length, depth, stride);
  };
  return {part(0), part(1), part(2)};
}
template <class T>
Matrix<T> head_output(const AttentionSize& size, T* y, int sequence, int head) {
  const int depth = size.width / size.heads;
  return {y + size_t(sequence) * size.length * size.width + size_t(head) * depth, size.length, depth,
          size.width};
}

/// Keeps P [sequences, heads, length, length] for the way back.
template <class T>
void attention_forward(Gemm<T> gemm, const AttentionSize& size, const T* qkv, T* weights, T* y) {
  const int length = size.length;
  const T scale = T(1) / std::sqrt(T(size.width / size.heads));
  for (int sequence = 0; sequence < size.sequences; sequence++)
    for (int head = 0; head < size.heads; head++, weights += size_t(length) * length) {
      const auto [q, k, v] = head_of(size, qkv, sequence, head);
      const Matrix<T> p(weights, length, length);
      gemm(scale, q, k.transpose(), T(0), p);
      for (int t = 0; t < length; t++) {
        T* row = weights + size_t(t) * length;
        softmax(row, t + 1);
        for (int later = t + 1; later < length; later++) row[later] = T(0);
      }
      gemm(T(1), p, v, T(0), head_output(size, y, sequence, head));
    }
}

/// Overwrites dqkv. `scratch` has room for one head's P.
template <class T>
void attention_backward(Gemm<T> gemm, const AttentionSize& size, const T* qkv, const T* weights, const T* dy,
                        T* dqkv, T* scratch) {
  const int length = size.length;
  const T scale = T(1) / std::sqrt(T(size.width / size.heads));
  for (int sequence = 0; sequence < size.sequences; sequence++)
    for (int head = 0; head < size.heads; head++, weights += size_t(length) * length) {
      const auto [q, k, v] = head_of(size, qkv, sequence, head);
      const auto [dq, dk, dv] = head_of(size, dqkv, sequence, head);
      const auto gradient = head_output(size, dy, sequence, head);
      const Matrix<const T> p(weights, length, length);
      const Matrix<T> ds(scratch, length, length);
      gemm(T(1), p.transpose(), gradient, T(0), dv);
      gemm(T(1), gradient, v.transpose(), T(0), ds);
      for (int t = 0; t < length; t++) {
        const T* p_row = weights + size_t(t) * length;
        T* ds_row = scratch + size_t(t) * length;
        const T mean = sum_of<T>(t + 1, [=](int i) { return ds_row[i] * p_row[i]; });
        for (int i = 0; i < length; i++) ds_row[i] = p_row[i] * (ds_row[i] - mean);
      }
      gemm(scale, ds, k, T(0), dq);
      gemm(scale, Matrix<const T>(ds).transpose(), q, T(0), dk);
    }
}

}  // namespace trainer
