// The words every room shares: ranks, element types, reductions, extents.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "rondo/narrow_floats.hpp"

namespace rondo {

/// A process's number in its communicator: 0 .. world-1.
using Rank = uint32_t;

/// A range of elements inside a buffer.
struct Extent {
  uint64_t first = 0, count = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

/// Part `part` of `count` elements cut into `parts` nearly equal pieces: the first `count % parts` pieces
/// have one element more, so no divisibility is ever required and pieces may be empty. This is the rule by
/// which reduce_scatter and all_gather place every rank's shard.
constexpr Extent shard(uint64_t count, uint32_t parts, uint32_t part) noexcept {
  const uint64_t base = count / parts, extra = count % parts;
  return {base * part + (part < extra ? part : extra), base + (part < extra ? 1 : 0)};
}

enum class DataType : uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, i8, u8, i16, u16, i32, u32, i64, u64 };

/// What is made of the ranks' elements x_r. docs/numerics.md says to the bit how each is computed. A weight w_r
/// is one number per rank and call.
enum class Reduction : uint8_t {
  sum,
  prod,
  min,
  max,
  avg,           ///< the sum, divided by the number of ranks
  bit_and,       ///< of the bits of integers
  bit_or,        ///< likewise
  bit_xor,       ///< likewise
  premul_sum,    ///< the sum of w_r * x_r; for integers the weight is a whole number, and all wraps
  weighted_avg,  ///< the sum of w_r * x_r, divided by the sum of w_r. Weights are finite and not negative.
                 ///< Ranks of weight 0 take no part: their data are not looked at, even if NaN. Where all
                 ///< weights are 0 the result is 0.
  min_num,       ///< min of those that are no NaN; NaN where all are (minimumNumber of IEEE 754-2019)
  max_num,       ///< likewise
};

/// Every one, in the order above.
inline constexpr std::array all_data_types{DataType::f64,    DataType::f32,    DataType::f16, DataType::bf16,
                                           DataType::f8e4m3, DataType::f8e5m2, DataType::i8,  DataType::u8,
                                           DataType::i16,    DataType::u16,    DataType::i32, DataType::u32,
                                           DataType::i64,    DataType::u64};
inline constexpr std::array all_reductions{Reduction::sum,          Reduction::prod,    Reduction::min,
                                           Reduction::max,          Reduction::avg,     Reduction::bit_and,
                                           Reduction::bit_or,       Reduction::bit_xor, Reduction::premul_sum,
                                           Reduction::weighted_avg, Reduction::min_num, Reduction::max_num};

/// The result is one of the operands, whatever their order; only NaN makes a difference between the two kinds.
constexpr bool is_extremum(Reduction reduction) noexcept {
  return reduction == Reduction::min || reduction == Reduction::max || reduction == Reduction::min_num ||
         reduction == Reduction::max_num;
}

/// Whether each rank gives a weight with its data.
constexpr bool is_weighted(Reduction reduction) noexcept {
  return reduction == Reduction::premul_sum || reduction == Reduction::weighted_avg;
}

constexpr size_t size_of(DataType type) noexcept {
  switch (type) {
    case DataType::f64:
    case DataType::i64:
    case DataType::u64:
      return 8;
    case DataType::f32:
    case DataType::i32:
    case DataType::u32:
      return 4;
    case DataType::f16:
    case DataType::bf16:
    case DataType::i16:
    case DataType::u16:
      return 2;
    case DataType::f8e4m3:
    case DataType::f8e5m2:
    case DataType::i8:
    case DataType::u8:
      return 1;
  }
  return 0;
}

constexpr bool is_float(DataType type) noexcept {
  switch (type) {
    case DataType::f64:
    case DataType::f32:
    case DataType::f16:
    case DataType::bf16:
    case DataType::f8e4m3:
    case DataType::f8e5m2:
      return true;
    case DataType::i8:
    case DataType::u8:
    case DataType::i16:
    case DataType::u16:
    case DataType::i32:
    case DataType::u32:
    case DataType::i64:
    case DataType::u64:
      return false;
  }
  return false;
}

/// Bitwise reductions are for integers, weighted averages for floats, all others for every type.
constexpr bool is_defined(DataType type, Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::bit_and:
    case Reduction::bit_or:
    case Reduction::bit_xor:
      return !is_float(type);
    case Reduction::weighted_avg:
      return is_float(type);
    case Reduction::sum:
    case Reduction::prod:
    case Reduction::min:
    case Reduction::max:
    case Reduction::avg:
    case Reduction::premul_sum:
    case Reduction::min_num:
    case Reduction::max_num:
      return true;
  }
  return false;
}

constexpr std::string_view name_of(DataType type) noexcept {
  switch (type) {
    case DataType::f64:
      return "f64";
    case DataType::f32:
      return "f32";
    case DataType::f16:
      return "f16";
    case DataType::bf16:
      return "bf16";
    case DataType::f8e4m3:
      return "f8e4m3";
    case DataType::f8e5m2:
      return "f8e5m2";
    case DataType::i8:
      return "i8";
    case DataType::u8:
      return "u8";
    case DataType::i16:
      return "i16";
    case DataType::u16:
      return "u16";
    case DataType::i32:
      return "i32";
    case DataType::u32:
      return "u32";
    case DataType::i64:
      return "i64";
    case DataType::u64:
      return "u64";
  }
  return "?";
}

constexpr std::string_view name_of(Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::prod:
      return "prod";
    case Reduction::min:
      return "min";
    case Reduction::max:
      return "max";
    case Reduction::avg:
      return "avg";
    case Reduction::bit_and:
      return "bit_and";
    case Reduction::bit_or:
      return "bit_or";
    case Reduction::bit_xor:
      return "bit_xor";
    case Reduction::premul_sum:
      return "premul_sum";
    case Reduction::weighted_avg:
      return "weighted_avg";
    case Reduction::min_num:
      return "min_num";
    case Reduction::max_num:
      return "max_num";
  }
  return "?";
}

/// C++ types that Rondo reduces and moves, and their DataType.
template <class T>
struct DataTypeOf;
template <>
struct DataTypeOf<double> : std::integral_constant<DataType, DataType::f64> {};
template <>
struct DataTypeOf<float> : std::integral_constant<DataType, DataType::f32> {};
template <>
struct DataTypeOf<float16> : std::integral_constant<DataType, DataType::f16> {};
template <>
struct DataTypeOf<bfloat16> : std::integral_constant<DataType, DataType::bf16> {};
template <>
struct DataTypeOf<float8_e4m3> : std::integral_constant<DataType, DataType::f8e4m3> {};
template <>
struct DataTypeOf<float8_e5m2> : std::integral_constant<DataType, DataType::f8e5m2> {};
template <>
struct DataTypeOf<int8_t> : std::integral_constant<DataType, DataType::i8> {};
template <>
struct DataTypeOf<uint8_t> : std::integral_constant<DataType, DataType::u8> {};
template <>
struct DataTypeOf<int16_t> : std::integral_constant<DataType, DataType::i16> {};
template <>
struct DataTypeOf<uint16_t> : std::integral_constant<DataType, DataType::u16> {};
template <>
struct DataTypeOf<int32_t> : std::integral_constant<DataType, DataType::i32> {};
template <>
struct DataTypeOf<uint32_t> : std::integral_constant<DataType, DataType::u32> {};
template <>
struct DataTypeOf<int64_t> : std::integral_constant<DataType, DataType::i64> {};
template <>
struct DataTypeOf<uint64_t> : std::integral_constant<DataType, DataType::u64> {};

template <class T>
concept Element = requires {
  DataTypeOf<std::remove_const_t<T>>::value;
};
/// What may be read where T is written: T or const T.
template <class In, class T>
concept InputOf = std::same_as<std::remove_const_t<In>, T>;
template <Element T>
inline constexpr DataType data_type_of = DataTypeOf<std::remove_const_t<T>>::value;

}  // namespace rondo
