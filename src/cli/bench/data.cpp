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
      case Reduction::min_num:
        result = std::min(result, x);
        break;
      case Reduction::max:
      case Reduction::max_num:
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

bool is_uneven(Operation operation) {
  return operation == Operation::reduce_scatter_v || operation == Operation::all_gather_v ||
         operation == Operation::all_to_all_v;
}

// Element i of this rank's output, which counts from the beginning of the whole vector.
template <class T>
T expected(uint64_t i, const BenchOptions& o, const Place& place, uint32_t round) {
  const auto of = [&](Rank rank, uint64_t index) { return contribution<T>(index, rank, round, o.reduction); };
  switch (o.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::reduce_scatter_v:
    case Operation::reduce:
      return reduced<T>(i, place.world, round, o.reduction);
    case Operation::all_gather:
    case Operation::all_gather_v:
    case Operation::gather: {
      Rank owner = 0;
      for (Extent part = place.part(o, 0); i >= part.first + part.count; part = place.part(o, ++owner)) {
      }
      return of(owner, i);
    }
    case Operation::broadcast:
    case Operation::scatter:
      return of(o.root, i);
    case Operation::all_to_all:
    case Operation::all_to_all_v: {
      const Extent mine = place.part(o, place.rank);  // of everybody's input
      return of(Rank(i / mine.count), mine.first + i % mine.count);
    }
    case Operation::send_recv:
      return of((place.rank + place.world - 1) % place.world, i);
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

Extent Place::part(const BenchOptions& options, Rank r) const {
  if (!is_uneven(options.operation)) return shard(count, world, r);
  const uint64_t shares = uint64_t(world) * (world + 1) / 2;
  const auto first = [&](uint64_t n) { return count * (n * (n + 1) / 2) / shares; };
  return {first(r), first(r + 1) - first(r)};
}

Extent Place::input(const BenchOptions& options) const {
  switch (options.operation) {
    case Operation::all_gather:
    case Operation::all_gather_v:
    case Operation::gather:
      return part(options, rank);
    case Operation::scatter:
    case Operation::broadcast:
      return rank == options.root ? Extent{0, count} : Extent{};
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::reduce_scatter_v:
    case Operation::reduce:
    case Operation::all_to_all:
    case Operation::all_to_all_v:
    case Operation::send_recv:
    case Operation::barrier:
      break;
  }
  return {0, count};
}

Extent Place::output(const BenchOptions& options) const {
  switch (options.operation) {
    case Operation::reduce_scatter:
    case Operation::reduce_scatter_v:
    case Operation::scatter:
      return part(options, rank);
    case Operation::reduce:
    case Operation::gather:
      return rank == options.root ? Extent{0, count} : Extent{};
    case Operation::all_to_all_v:
      return {0, part(options, rank).count * world};
    case Operation::all_reduce:
    case Operation::all_gather:
    case Operation::all_gather_v:
    case Operation::broadcast:
    case Operation::all_to_all:
    case Operation::send_recv:
    case Operation::barrier:
      break;
  }
  return {0, count};
}

uint64_t count_wrong(const std::byte* result, const BenchOptions& options, const Place& place,
                     uint32_t round) {
  const Extent extent = place.output(options);
  return with_type(options.type, [&](auto zero) {
    using T = decltype(zero);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < extent.count; i++) {
      // By their bits: a product of 8-bit floats may be NaN.
      const T right = expected<T>(extent.first + i, options, place, round);
      wrong += std::memcmp(result + i * sizeof right, &right, sizeof right) != 0;
    }
    return wrong;
  });
}

}  // namespace rondo::bench
