// Arithmetic written so that the compiler can use vector instructions without being allowed to reorder sums.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace trainer {

/// e^x for float, within 2e-7 relative on [-87, 88] and clamped outside; no table, no branch, no call.
///
/// e^x = 2^n e^r with n = round(x / ln 2), so |r| <= ln 2 / 2. Adding 1.5 * 2^23 leaves n in the low bits of
/// the sum; shifted into the exponent field they are 2^n. ln 2 is subtracted in two parts to keep r exact;
/// e^r is a polynomial.
inline float exponential(float x) {
  constexpr float rounder = 12582912.0f, log2_e = 1.44269504f, ln2_high = 0.693359375f,
                  ln2_low = -2.12194440e-4f;
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * log2_e + rounder;
  const float n = shifted - rounder;
  const float r = x - n * ln2_high - n * ln2_low;
  float p = 1.9875691e-4f;  // minimax coefficients of the Cephes library
  p = p * r + 1.3981999e-3f;
  p = p * r + 8.3334519e-3f;
  p = p * r + 4.1665796e-2f;
  p = p * r + 1.6666665e-1f;
  p = p * r + 5.0000001e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127u) << 23);
}

/// In double the library's: double is for checking, not for speed.
inline double exponential(double x) { return std::exp(x); }

/// combine(... term(0), term(1) ...) over `count` terms in a fixed order: 16 running values, joined pairwise.
template <class T, class Term, class Combine>
T fold(int count, T identity, Term term, Combine combine) {
  std::array<T, 16> lanes;
  lanes.fill(identity);
  int i = 0;
  for (; i + 16 <= count; i += 16)
    for (int lane = 0; lane < 16; lane++) lanes[lane] = combine(lanes[lane], term(i + lane));
  for (int lane = 0; i + lane < count; lane++) lanes[lane] = combine(lanes[lane], term(i + lane));
  for (int width = 8; width > 0; width /= 2)
    for (int lane = 0; lane < width; lane++) lanes[lane] = combine(lanes[lane], lanes[lane + width]);
  return lanes[0];
}

template <class T, class Term>
T sum_of(int count, Term term) {
  return fold<T>(count, T(0), term, [](T a, T b) { return a + b; });
}

template <class T>
T max_of(int count, const T* values) {
  return fold<T>(
      count, values[0], [&](int i) { return values[i]; }, [](T a, T b) { return a < b ? b : a; });
}

/// row = exp(row - max) / sum. Returns ln(sum) + max, from which ln of any entry follows.
template <class T>
T softmax(T* row, int count) {
  const T highest = max_of(count, row);
  for (int i = 0; i < count; i++) row[i] = exponential(row[i] - highest);
  const T sum = sum_of<T>(count, [&](int i) { return row[i]; });
  const T scale = T(1) / sum;
  for (int i = 0; i < count; i++) row[i] *= scale;
  return std::log(sum) + highest;
}

}  // namespace trainer
