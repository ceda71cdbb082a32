// What the kernels must give, in plain scalar code: one element at a time, every case spelled out, nothing
// shared with the kernels or with the conversions of rondo/narrow_floats.hpp.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/isa.hpp"

namespace rondo::tests {

__extension__ using Int128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

/// The instruction sets that this processor has.
inline std::vector<kernels::Isa> isas() {
  std::vector<kernels::Isa> able;
  for (const auto isa : {kernels::Isa::baseline, kernels::Isa::avx2, kernels::Isa::avx512}) {
    if (runs(isa)) able.push_back(isa);
  }
  return able;
}

inline std::string name_of(kernels::Isa isa) {
  switch (isa) {
    case kernels::Isa::baseline:
      return "baseline";
    case kernels::Isa::avx2:
      return "avx2";
    case kernels::Isa::avx512:
      return "avx512";
  }
  return "?";
}

// ---- types

template <class T>
inline constexpr bool is_narrow_float = requires {
  typename T::Format;
};

/// The parameters of a narrow float, once more.
template <class T>
struct FormatOf;
template <>
struct FormatOf<float16> {
  static constexpr int exponent_bits = 5, mantissa_bits = 10, bias = 15;
  static constexpr uint32_t infinity = 0x7c00, nan = 0x7fff, sign = 0x8000;
};
template <>
struct FormatOf<bfloat16> {
  static constexpr int exponent_bits = 8, mantissa_bits = 7, bias = 127;
  static constexpr uint32_t infinity = 0x7f80, nan = 0x7fff, sign = 0x8000;
};
template <>
struct FormatOf<float8_e4m3> {
  static constexpr int exponent_bits = 4, mantissa_bits = 3, bias = 7;
  static constexpr uint32_t infinity = 0x7f, nan = 0x7f, sign = 0x80;  // what an overflow gives is a NaN
};
template <>
struct FormatOf<float8_e5m2> {
  static constexpr int exponent_bits = 5, mantissa_bits = 2, bias = 15;
  static constexpr uint32_t infinity = 0x7c, nan = 0x7f, sign = 0x80;
};

/// The number that a code means; NaN and infinity as such.
template <class T>
double value_of(uint32_t code) {
  using F = FormatOf<T>;
  const uint32_t magnitude = code & (F::sign - 1);
  const double sign = code & F::sign ? -1 : 1;
  if (magnitude > F::infinity || magnitude == F::nan) return std::nan("");
  if (magnitude == F::infinity) return sign * std::numeric_limits<double>::infinity();
  const int exponent = int(magnitude >> F::mantissa_bits);
  const int mantissa = int(magnitude & ((1u << F::mantissa_bits) - 1));
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - F::bias - F::mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << F::mantissa_bits), exponent - F::bias - F::mantissa_bits);
}

/// All finite magnitudes in order, and one more as if exponents went on: where overflow begins to be nearer.
template <class T>
const std::vector<double>& magnitudes() {
  static const std::vector<double> all = [] {
    std::vector<double> values;
    for (uint32_t code = 0; code < FormatOf<T>::infinity; ++code) values.push_back(value_of<T>(code));
    values.push_back(2 * values.back() - values[values.size() - 2]);
    return values;
  }();
  return all;
}

/// The code nearest to x, of two equally near ones the even one.
template <class T>
uint32_t nearest(double x) {
  using F = FormatOf<T>;
  if (std::isnan(x)) return F::nan;
  const uint32_t sign = std::signbit(x) ? F::sign : 0;
  const std::vector<double>& values = magnitudes<T>();
  const double magnitude = std::fabs(x);
  auto code = uint32_t(std::upper_bound(values.begin(), values.end(), magnitude) - values.begin()) - 1;
  if (code < F::infinity) {
    const double middle = (values[code] + values[code + 1]) / 2;
    if (magnitude > middle || (magnitude == middle && code % 2 == 1)) ++code;
  }
  if (code >= F::infinity) return F::infinity == F::nan ? F::nan : F::infinity | sign;
  return code | sign;
}

// What a type is widened to, per reduction.
template <class T>
struct AverageOf {
  using type = T;
};
// clang-format off
template <> struct AverageOf<int8_t> { using type = int32_t; };
template <> struct AverageOf<uint8_t> { using type = int32_t; };
template <> struct AverageOf<int16_t> { using type = int64_t; };
template <> struct AverageOf<uint16_t> { using type = int64_t; };
template <> struct AverageOf<int32_t> { using type = int64_t; };
template <> struct AverageOf<uint32_t> { using type = int64_t; };
template <> struct AverageOf<int64_t> { using type = Int128; };
template <> struct AverageOf<uint64_t> { using type = Int128; };
// clang-format on
template <class T, Reduction reduction>
using AccumulatorOf =
    std::conditional_t<is_narrow_float<T>, std::conditional_t<is_extremum(reduction), T, float>,
                       std::conditional_t<reduction == Reduction::avg, typename AverageOf<T>::type, T>>;

template <class A>
inline constexpr bool is_float = std::is_floating_point_v<A> || is_narrow_float<A>;

template <class T>
bool is_nan(T value) {
  if constexpr (is_narrow_float<T>)
    return std::isnan(value_of<T>(value.bits));
  else if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  else
    return false;
}

template <class T>
bool same_bits(T left, T right) {
  return std::memcmp(&left, &right, sizeof(T)) == 0;
}

/// A partial may hold any NaN.
template <class A>
bool same_partial(A left, A right) {
  return (is_nan(left) && is_nan(right)) || same_bits(left, right);
}

// ---- one element

template <class A, class T>
A widened(T value) {
  if constexpr (is_narrow_float<T> && !is_narrow_float<A>)
    return static_cast<A>(value_of<T>(value.bits));
  else
    return static_cast<A>(value);
}

/// min, or with `largest` max; with `numbers` those that prefer numbers to NaN.
template <class A>
A extremum(bool largest, bool numbers, A left, A right) {
  if constexpr (is_narrow_float<A>) {
    const double value = extremum(largest, numbers, value_of<A>(left.bits), value_of<A>(right.bits));
    return A::from_bits(static_cast<typename A::Bits>(nearest<A>(value)));
  } else {
    if constexpr (std::is_floating_point_v<A>) {
      if (numbers && std::isnan(left)) return right;
      if (numbers && std::isnan(right)) return left;
      if (std::isnan(left) || std::isnan(right)) return std::numeric_limits<A>::quiet_NaN();
      if (left == 0 && right == 0) return std::signbit(left) != largest ? left : right;
    }
    return (left < right) != largest ? left : right;
  }
}

template <class A>
A combined(Reduction reduction, A left, A right) {
  if (is_extremum(reduction))
    return extremum(reduction == Reduction::max || reduction == Reduction::max_num,
                    reduction == Reduction::min_num || reduction == Reduction::max_num, left, right);
  if constexpr (is_narrow_float<A>) {
    return A();  // sums and products are never formed in it
  } else if constexpr (std::is_floating_point_v<A>) {
    return reduction == Reduction::prod ? left * right : left + right;
  } else {
    const auto l = Unsigned128(left), r = Unsigned128(right);
    if (reduction == Reduction::bit_and) return static_cast<A>(l & r);
    if (reduction == Reduction::bit_or) return static_cast<A>(l | r);
    if (reduction == Reduction::bit_xor) return static_cast<A>(l ^ r);
    return static_cast<A>(reduction == Reduction::prod ? l * r : l + r);
  }
}

template <class T, class A>
T finished(Reduction reduction, A value, uint32_t world) {
  if constexpr (is_narrow_float<A>) {
    return is_nan(value) ? T::from_bits(FormatOf<T>::nan) : value;
  } else {
    if (reduction == Reduction::avg) value = static_cast<A>(value / static_cast<A>(world));
    if constexpr (is_narrow_float<T>)
      return T::from_bits(static_cast<typename T::Bits>(nearest<T>(value)));
    else if constexpr (std::is_same_v<T, float>)
      return std::isnan(value) ? std::bit_cast<float>(uint32_t{0x7fc00000}) : value;
    else if constexpr (std::is_same_v<T, double>)
      return std::isnan(value) ? std::bit_cast<double>(uint64_t{0x7ff8000000000000}) : value;
    else
      return static_cast<T>(value);
  }
}

// ---- the canonical tree

/// Node (level, index) of the canonical tree over `values`, as it is defined: it covers ranks
/// [index * 2^level, min((index + 1) * 2^level, world)).
template <class A, class Values>
A node(Reduction reduction, const Values& values, uint32_t world, uint32_t level, uint32_t index) {
  if (level == 0) return values(index);
  const A left = node<A>(reduction, values, world, level - 1, 2 * index);
  const bool right_is_empty = uint64_t(2 * index + 1) << (level - 1) >= world;
  return right_is_empty
             ? left
             : combined<A>(reduction, left, node<A>(reduction, values, world, level - 1, 2 * index + 1));
}

template <class A, class Values>
A tree(Reduction reduction, const Values& values, uint32_t world) {
  return node<A>(reduction, values, world, uint32_t(std::bit_width(world - 1)), 0);
}

// ---- tests over all types

/// Calls body(T()) for the C++ type of every DataType.
template <class Body>
void for_each_narrow_float(Body body) {
  body(float16());
  body(bfloat16());
  body(float8_e4m3());
  body(float8_e5m2());
}
/// Calls body(nan) with the NaN that results have, of every type of floats.
template <class Body>
void for_each_canonical_nan(Body body) {
  body(std::bit_cast<double>(uint64_t{0x7ff8000000000000}));
  body(std::bit_cast<float>(uint32_t{0x7fc00000}));
  body(float16::from_bits(0x7fff));
  body(bfloat16::from_bits(0x7fff));
  body(float8_e4m3::from_bits(0x7f));
  body(float8_e5m2::from_bits(0x7f));
}
template <class Body>
void for_each_integer(Body body) {
  body(int8_t());
  body(uint8_t());
  body(int16_t());
  body(uint16_t());
  body(int32_t());
  body(uint32_t());
  body(int64_t());
  body(uint64_t());
}
template <class Body>
void for_each_type(Body body) {
  body(double());
  body(float());
  for_each_narrow_float(body);
  for_each_integer(body);
}

/// Calls body(A(), reduction) with the accumulator type of every reduction of T that is not weighted.
template <class T, class Body>
void for_each_reduction(Body body) {
  body(AccumulatorOf<T, Reduction::sum>(), Reduction::sum);
  body(AccumulatorOf<T, Reduction::prod>(), Reduction::prod);
  body(AccumulatorOf<T, Reduction::min>(), Reduction::min);
  body(AccumulatorOf<T, Reduction::max>(), Reduction::max);
  body(AccumulatorOf<T, Reduction::avg>(), Reduction::avg);
  body(AccumulatorOf<T, Reduction::min_num>(), Reduction::min_num);
  body(AccumulatorOf<T, Reduction::max_num>(), Reduction::max_num);
  if constexpr (std::is_integral_v<T>) {
    body(T(), Reduction::bit_and);
    body(T(), Reduction::bit_or);
    body(T(), Reduction::bit_xor);
  }
}

}  // namespace rondo::tests
