// Operands for the checks of kernels: misaligned, between marked bytes, and full of the values at which
// reductions go wrong.
#pragma once
#include <array>
#include <random>

#include "kernels_reference.hpp"

namespace rondo::tests {

using Random = std::mt19937_64;

/// Random bits, every fourth one of the special values.
template <class T>
T awkward(Random& random) {
  const uint64_t bits = random();
  T value;
  if constexpr (std::is_same_v<T, Int128>) {
    return static_cast<Int128>(Unsigned128(random()) << 64 | bits);
  } else if constexpr (is_narrow_float<T>) {
    using F = FormatOf<T>;
    const std::array<uint32_t, 8> values{
        0, F::sign, 1, F::infinity - 1, F::infinity, F::infinity | F::sign, F::nan, 1u << F::mantissa_bits};
    const uint64_t code = random() % 4 == 0 ? values[random() % values.size()] : bits;
    return T::from_bits(static_cast<typename T::Bits>(code));
  } else if (random() % 4 == 0) {
    using limits = std::numeric_limits<T>;
    const std::array values{T(0),
                            T(-0.0),
                            T(1),
                            static_cast<T>(-1),
                            limits::max(),
                            limits::min(),
                            limits::lowest(),
                            limits::denorm_min(),
                            static_cast<T>(-limits::denorm_min()),
                            limits::infinity(),
                            static_cast<T>(-limits::infinity()),
                            limits::quiet_NaN()};
    return values[random() % values.size()];
  }
  std::memcpy(&value, &bits, std::min(sizeof value, sizeof bits));
  return value;
}

/// Elements at an offset of some bytes from a 64-byte boundary, with marked bytes before and after.
template <class T>
class Misaligned {
 public:
  Misaligned(size_t count, size_t offset) : offset_(64 + offset), count_(count) {
    bytes_.assign(offset_ + count * sizeof(T) + 64 + 64, mark);
  }
  // A copy's memory may lie otherwise.
  Misaligned(const Misaligned& other) : Misaligned(other.count_, other.offset_ - 64) {
    std::memcpy(data(), other.data(), count_ * sizeof(T));
  }
  Misaligned(Misaligned&&) noexcept = default;

  std::byte* data() { return bytes_.data() + start(); }
  const std::byte* data() const { return bytes_.data() + start(); }
  T operator[](size_t index) const {
    T value;
    std::memcpy(&value, data() + index * sizeof(T), sizeof(T));
    return value;
  }
  void set(size_t index, T value) { std::memcpy(data() + index * sizeof(T), &value, sizeof(T)); }
  void fill(Random& random) {
    for (size_t i = 0; i < count_; ++i) set(i, awkward<T>(random));
  }
  bool only_its_own_bytes_written() const {
    const std::byte* const end = bytes_.data() + bytes_.size();
    const auto marked = [](std::byte b) { return b == mark; };
    return std::all_of(bytes_.data(), data(), marked) &&
           std::all_of(data() + count_ * sizeof(T), end, marked);
  }

 private:
  size_t start() const {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    return (64 - address % 64) % 64 + offset_;
  }

  static constexpr std::byte mark{0xa5};
  size_t offset_, count_;
  std::vector<std::byte> bytes_;
};

/// The engine's way through several contributions: narrow, partial ..., finish_partial.
template <class T>
T reduce(kernels::Isa isa, Reduction reduction, const std::vector<T>& values) {
  const kernels::Reducer& kernels = kernels::reducer(isa, data_type_of<T>, reduction);
  const auto bytes = [&](size_t i) { return reinterpret_cast<const std::byte*>(&values[i]); };
  const auto world = static_cast<uint32_t>(values.size());
  T result{};
  auto* target = reinterpret_cast<std::byte*>(&result);
  if (world == 1) {
    kernels.finish(target, bytes(0), 1, world);
  } else if (world == 2) {
    kernels.finish_narrow(target, bytes(0), bytes(1), 1, world);
  } else {
    std::vector<std::byte> partial(kernels.accumulator_bytes), next(partial);
    kernels.narrow(partial.data(), bytes(0), bytes(1), 1);
    for (size_t i = 2; i + 1 < values.size(); ++i) {
      kernels.partial(next.data(), partial.data(), bytes(i), 1);
      partial.swap(next);
    }
    kernels.finish_partial(target, partial.data(), bytes(values.size() - 1), 1, world);
  }
  return result;
}

/// The same contributions by the tree.
template <class T>
T reduce_tree(kernels::Isa isa, Reduction reduction, const std::vector<T>& values) {
  std::vector<const std::byte*> sources;
  for (const T& value : values) sources.push_back(reinterpret_cast<const std::byte*>(&value));
  T result{};
  kernels::reducer(isa, data_type_of<T>, reduction)
      .finish_tree(reinterpret_cast<std::byte*>(&result), sources.data(), uint32_t(values.size()), 1);
  return result;
}

}  // namespace rondo::tests
