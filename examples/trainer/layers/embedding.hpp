// y[s, t] = table[token[s, t]] + position[t]: a row for each symbol, and one for each place in the sequence.
// Backward: each row's gradient is the sum over the places that used it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace trainer {

struct EmbeddingSize {
  int sequences, length, width;
};

template <class T>
void embedding_forward(const EmbeddingSize& size, const int32_t* tokens, const T* table, const T* position,
                       T* y) {
  for (int row = 0; row < size.sequences * size.length; row++, y += size.width) {
    const T* symbol = table + size_t(tokens[row]) * size.width;
    const T* place = position + size_t(row % size.length) * size.width;
    for (int i = 0; i < size.width; i++) y[i] = symbol[i] + place[i];
  }
}

template <class T>
void embedding_backward(const EmbeddingSize& size, const int32_t* tokens, const T* dy, T* dtable,
                        T* dposition) {
  for (int row = 0; row < size.sequences * size.length; row++, dy += size.width) {
    T* symbol = dtable + size_t(tokens[row]) * size.width;
    T* place = dposition + size_t(row % size.length) * size.width;
    for (int i = 0; i < size.width; i++) {
      symbol[i] += dy[i];
      place[i] += dy[i];
    }
  }
}

}  // namespace trainer
