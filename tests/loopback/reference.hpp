// Data whose right results are exact in every type, and the one-process model that gives them.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "rondo/types.hpp"

namespace rondo::test {

/// Exact results are formed wide, integers modulo the type's range.
__extension__ using int128 = __int128;
template <class T>
using Exact = std::conditional_t<std::is_integral_v<T>, int128, double>;

template <class T>
Exact<T> exact(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return Exact<T>(value);
  else
    return double(float(value));
}

/// Rounded once.
template <class T>
T rounded(Exact<T> value) {
  if constexpr (std::is_arithmetic_v<T>)
    return T(value);
  else
    return T(float(value));
}

/// Element i of rank r. Small integers (8-bit floats round some, unsigned types wrap the negative ones), so
/// that sums over few ranks are exact in the accumulator in any order; a shifted, swapped or doubly added
/// chunk changes them. Products stay small; integer averages start near the type's limit, where a sum in the
/// type itself would wrap. Of bitwise operands all bits differ; for and one bit in eight is 0, for or it is 1,
/// so that some of eight ranks' results are left either way.
template <class T>
T element(Rank rank, uint64_t i, Reduction reduction) {
  const uint64_t hash = ((i + 1) * 2654435761u + (rank + 1) * 0x85ebca6bu) >> 5;
  if (reduction == Reduction::prod) return rounded<T>(hash % 3 != 0 ? 1 : std::is_unsigned_v<T> ? 2 : -2);
  if constexpr (std::is_integral_v<T>) {
    if (reduction == Reduction::avg) return T(std::numeric_limits<T>::max() - T(hash % 61));
    const uint64_t bits = (hash * 0x9e3779b97f4a7c15) ^ (hash * 0x9e3779b97f4a7c15 >> 32);
    const uint64_t few = bits & std::rotl(bits, 13) & std::rotl(bits, 29);
    if (reduction == Reduction::bit_and) return T(~few);
    if (reduction == Reduction::bit_or) return T(few);
    if (reduction == Reduction::bit_xor) return T(bits);
  }
  return rounded<T>(Exact<T>(hash % 61) - 30);
}

/// Of integers.
template <class T>
T bitwise(Reduction reduction, T left, T right) {
  if (reduction == Reduction::bit_xor) return T(left ^ right);
  return reduction == Reduction::bit_and ? T(left & right) : T(left | right);
}

/// The reduction of element i over all ranks; not of weighted ones.
template <class T>
T reduced(uint32_t world, uint64_t i, Reduction reduction) {
  Exact<T> result = exact(element<T>(0, i, reduction));
  for (Rank rank = 1; rank < world; rank++) {
    const auto x = exact(element<T>(rank, i, reduction));
    switch (reduction) {
      case Reduction::sum:
      case Reduction::avg:
        result += x;
        break;
      case Reduction::prod:
        result *= x;
        break;
      case Reduction::min:
      case Reduction::min_num:
        result = std::min(result, x);
        break;
      case Reduction::max:
      case Reduction::max_num:
        result = std::max(result, x);
        break;
      case Reduction::bit_and:
      case Reduction::bit_or:
      case Reduction::bit_xor:
        if constexpr (std::is_integral_v<T>) result = bitwise(reduction, result, x);
        break;
      case Reduction::premul_sum:
      case Reduction::weighted_avg:
        break;
    }
  }
  // The sum is exact, so the quotient is rounded once whether it is formed in T or wider.
  return rounded<T>(reduction == Reduction::avg ? result / Exact<T>(world) : result);
}

/// `count` elements that start `offset` bytes past an aligned address, between guards that must stay as they
/// are; in `memory`, where that is given, else in memory of its own.
template <class T>
class Guarded {
 public:
  Guarded(size_t count, size_t offset, std::span<std::byte> memory = {})
      : count_(count), offset_(offset), bytes_(memory) {
    const size_t needed = count * sizeof(T) + 2 * guard + offset;
    if (memory.empty()) own_.resize(needed);
    bytes_ = (memory.empty() ? std::span(own_) : memory).first(needed);
    std::memset(bytes_.data(), int(mark), bytes_.size());
  }
  Guarded(const Guarded&) = delete;

  std::byte* data() { return bytes_.data() + guard + offset_; }
  T get(size_t i) {
    T value;
    std::memcpy(&value, data() + i * sizeof(T), sizeof value);
    return value;
  }
  void set(size_t i, T value) { std::memcpy(data() + i * sizeof(T), &value, sizeof value); }
  void set(size_t i, std::span<const T> values) {
    if (!values.empty()) std::memcpy(data() + i * sizeof(T), values.data(), values.size_bytes());
  }
  /// How many of the elements from i on are not, bit by bit, these values.
  size_t differing(size_t i, std::span<const T> values) {
    if (values.empty() || std::memcmp(data() + i * sizeof(T), values.data(), values.size_bytes()) == 0)
      return 0;
    size_t wrong = 0;
    for (size_t k = 0; k < values.size(); k++)
      wrong += std::memcmp(data() + (i + k) * sizeof(T), &values[k], sizeof(T)) != 0;
    return wrong;
  }
  bool intact() const {
    const auto marked = [](std::byte b) { return b == mark; };
    const size_t first = guard + offset_, end = first + count_ * sizeof(T);
    return std::ranges::all_of(bytes_.first(first), marked) &&
           std::ranges::all_of(bytes_.subspan(end), marked);
  }

 private:
  static constexpr size_t guard = 64;
  static constexpr std::byte mark{0xA5};
  size_t count_, offset_;
  std::vector<std::byte> own_;
  std::span<std::byte> bytes_;
};

}  // namespace rondo::test
