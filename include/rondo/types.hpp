// The words every room shares: ranks, element types, reductions, extents.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

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

enum class DataType : uint8_t { f32, f64, i32, i64 };
enum class Reduction : uint8_t { sum, prod, min, max, avg };

constexpr size_t size_of(DataType type) noexcept {
  switch (type) {
    case DataType::f32:
      return 4;
    case DataType::f64:
      return 8;
    case DataType::i32:
      return 4;
    case DataType::i64:
      return 8;
  }
  return 0;
}

constexpr std::string_view name_of(DataType type) noexcept {
  switch (type) {
    case DataType::f32:
      return "f32";
    case DataType::f64:
      return "f64";
    case DataType::i32:
      return "i32";
    case DataType::i64:
      return "i64";
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
  }
  return "?";
}

/// C++ types that Rondo reduces and moves, and their DataType.
template <class T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> : std::integral_constant<DataType, DataType::f32> {};
template <>
struct DataTypeOf<double> : std::integral_constant<DataType, DataType::f64> {};
template <>
struct DataTypeOf<int32_t> : std::integral_constant<DataType, DataType::i32> {};
template <>
struct DataTypeOf<int64_t> : std::integral_constant<DataType, DataType::i64> {};

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
