#include "cli/bench/data.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace rondo::bench {
namespace {

// -15 .. 16 by a multiplicative hash: a shifted, swapped or doubly added chunk shows, and sums over up to
// 2^18 ranks are exact in f32 in any order. Factors of a product are 1 or -2, exact up to 126 of them.
int64_t small_integer(uint64_t i, Rank rank, uint32_t round, Reduction reduction) {
  const auto hash = uint32_t(i + 1) * 2654435761u + (rank + 1) * 0x85ebca6bu + round * 0xc2b2ae35u;
  if (reduction == Reduction::prod) return (hash >> 27) % 8 == 0 ? -2 : 1;
  return int64_t(hash >> 27) - 15;
}

template <class T>
T reduced(uint64_t i, uint32_t world, uint32_t round, Reduction reduction) {
  using Exact = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  auto result = Exact(small_integer(i, 0, round, reduction));
  for (Rank rank = 1; rank < world; rank++) {
    const auto x = Exact(small_integer(i, rank, round, reduction));
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
    }
  }
  // The sum is exact, so the quotient is rounded once whether it is formed in T or wider.
  return T(reduction == Reduction::avg ? result / Exact(world) : result);
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
      return T(small_integer(i, owner_of(i, count, world), round, o.reduction));
    case Operation::broadcast:
      return T(small_integer(i, o.root, round, o.reduction));
    case Operation::barrier:
      break;
  }
  return T();
}

// Calls body with a value of the C++ type of `type`.
template <class Body>
auto with_type(DataType type, Body body) {
  switch (type) {
    case DataType::f32:
      return body(float());
    case DataType::f64:
      return body(double());
    case DataType::i32:
      return body(int32_t());
    case DataType::i64:
      return body(int64_t());
  }
  return body(float());
}

}  // namespace

void fill(std::byte* target, const Extent& extent, DataType type, Reduction reduction, Rank rank,
          uint32_t round) {
  with_type(type, [&](auto zero) {
    for (uint64_t i = 0; i < extent.count; i++) {
      const auto value = decltype(zero)(small_integer(extent.first + i, rank, round, reduction));
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
      T value;
      std::memcpy(&value, result + i * sizeof value, sizeof value);
      wrong += !(value == expected<T>(extent.first + i, options, count, world, round));
    }
    return wrong;
  });
}

}  // namespace rondo::bench
