#include "cli/bench/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace rondo::bench {
namespace {

// -15 .. 16 by a multiplicative hash: a shifted, swapped or doubly added chunk shows, and sums over up to
// 2^18 ranks are exact in f32 in any order. Factors of a product are 1 or -2, exact up to 126 of them. For and,
// and for or, few of five bits are 0, or 1, so that the results differ for more ranks.
int64_t small_integer(uint64_t i, Rank rank, uint32_t round, Reduction reduction) {
  const auto hash = uint32_t(i + 1) * 2654435761u + (rank + 1) * 0x85ebca6bu + round * 0xc2b2ae35u;
  if (reduction == Reduction::prod) return (hash >> 27) % 8 == 0 ? -2 : 1;
  if (reduction == Reduction::bit_and) return 31 & ~(1 << (hash >> 27) % 8);
  if (reduction == Reduction::bit_or) return 31 & (1 << (hash >> 27) % 8);
  return int64_t(hash >> 27) - 15;
}

__extension__ using Int128 = __int128;

// Rounded once, or for integers truncated, and then modulo the type's range.
template <class T>
T element_of(double value) {
  if constexpr (std::is_integral_v<T>)
    return T(static_cast<Int128>(std::fmod(value, 0x1p64)));
  else if constexpr (std::is_floating_point_v<T>)
    return T(value);
  else
    return T(float(value));
}

template <class T>
double number_of(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return double(value);
  else
    return double(float(value));
}

// What a rank holds: that integer. Where T has no sign, those below 0 are 17 .. 31, and -2 is 2. f8e5m2 rounds
// some.
template <class T>
T contribution(uint64_t i, Rank rank, uint32_t round, Reduction reduction) {
  int64_t number = small_integer(i, rank, round, reduction);
  if (std::is_unsigned_v<T> && number < 0) number += reduction == Reduction::prod ? 4 : 32;
  return element_of<T>(double(number));
}

template <class T>
T reduced(uint64_t i, uint32_t world, uint32_t round, Reduction reduction) {
  double result = number_of(contribution<T>(i, 0, round, reduction));
  for (Rank rank = 1; rank < world; rank++) {
    const double x = number_of(contribution<T>(i, rank, round, reduction));
    switch (reduction) {
      case Reduction::sum:
      case Reduction::avg:
        result += x;
        break;
      case Reduction::prod:
        result *= x;
        break;
      case Reduction::min:
        result = std::min(result, x);
        break;
      case Reduction::max:
        result = std::max(result, x);
        break;
      case Reduction::bit_and:
        result = double(int64_t(result) & int64_t(x));
        break;
      case Reduction::bit_or:
        result = double(int64_t(result) | int64_t(x));
        break;
      case Reduction::bit_xor:
        result = double(int64_t(result) ^ int64_t(x));
        break;
      case Reduction::premul_sum:
      case Reduction::weighted_avg:
        break;  // not measured
    }
  }
  // Sum and product are exact, so the quotient is rounded once whether it is formed in T or wider.
  return element_of<T>(reduction == Reduction::avg ? result / world : result);
}

Rank owner_of(uint64_t i, uint64_t count, uint32_t world) {
  const uint64_t base = count / world, extra = count % world;
  const uint64_t in_larger = (base + 1) * extra;
  return Rank(i < in_larger ? i / (base + 1) : extra + (i - in_larger) / base);
}

template <class T>
T expected(uint64_t i, const BenchOptions& o, uint64_t count, uint32_t world, uint32_t round) {
  switch (o.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
      return reduced<T>(i, world, round, o.reduction);
    case Operation::all_gather:
      return contribution<T>(i, owner_of(i, count, world), round, o.reduction);
    case Operation::broadcast:
      return contribution<T>(i, o.root, round, o.reduction);
    case Operation::barrier:
      break;
  }
  return T();
}

// Calls body with a value of the C++ type of `type`.
template <class Body>
auto with_type(DataType type, Body body) {
  switch (type) {
    case DataType::f64:
      return body(double());
    case DataType::f32:
      return body(float());
    case DataType::f16:
      return body(float16());
    case DataType::bf16:
      return body(bfloat16());
    case DataType::f8e4m3:
      return body(float8_e4m3());
    case DataType::f8e5m2:
      return body(float8_e5m2());
    case DataType::i8:
      return body(int8_t());
    case DataType::u8:
      return body(uint8_t());
    case DataType::i16:
      return body(int16_t());
    case DataType::u16:
      return body(uint16_t());
    case DataType::i32:
      return body(int32_t());
    case DataType::u32:
      return body(uint32_t());
    case DataType::i64:
      return body(int64_t());
    case DataType::u64:
      return body(uint64_t());
  }
  return body(float());
}

}  // namespace

void fill(std::byte* target, const Extent& extent, DataType type, Reduction reduction, Rank rank,
          uint32_t round) {
  with_type(type, [&](auto zero) {
    for (uint64_t i = 0; i < extent.count; i++) {
      const auto value = contribution<decltype(zero)>(extent.first + i, rank, round, reduction);
      std::memcpy(target + i * sizeof value, &value, sizeof value);
    }
  });
}

uint64_t count_wrong(const std::byte* result, const Extent& extent, const BenchOptions& options,
                     uint64_t count, uint32_t world, uint32_t round) {
  return with_type(options.type, [&](auto zero) {
    using T = decltype(zero);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < extent.count; i++) {
      // By their bits: a product of 8-bit floats may be NaN.
      const T right = expected<T>(extent.first + i, options, count, world, round);
      wrong += std::memcmp(result + i * sizeof right, &right, sizeof right) != 0;
    }
    return wrong;
  });
}

}  // namespace rondo::bench
