// loss = sum over rows of -ln softmax(logits)[target]; a row whose target is `no_target` counts for nothing.
// Backward: dlogits = softmax(logits) - onehot(target), not divided by anything: whoever knows how many
// targets all ranks have together divides, once.
#pragma once
#include <cstddef>
#include <cstdint>

#include "vector_math.hpp"

namespace trainer {

inline constexpr int32_t no_target = -1;

/// What a batch adds to the mean: the sum of its losses and how many there were.
struct LossSum {
  double loss = 0;
  int64_t targets = 0;
};

/// Turns logits [rows, symbols] into dlogits where they stand.
template <class T>
LossSum cross_entropy(int rows, int symbols, const int32_t* targets, T* logits) {
  LossSum sum;
  for (int row = 0; row < rows; row++, logits += symbols) {
    if (targets[row] == no_target) {
      for (int i = 0; i < symbols; i++) logits[i] = T(0);
      continue;
    }
    const T right = logits[targets[row]];
    sum.loss += double(softmax(logits, symbols) - right);
    sum.targets++;
    logits[targets[row]] -= T(1);
  }
  return sum;
}

}  // namespace trainer
