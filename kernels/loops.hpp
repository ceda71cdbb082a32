// The reductions themselves: one loop, six ways to call it. Compiled once per instruction set by loops.cpp,
// which names the namespace RONDO_ISA; nothing in here may call an inline function of another header, or the
// linker could keep a copy of it that needs AVX for everybody.
//
//   left   T or A --widen--> A --+
//                                +--> op --> A [--finish--> T] --> target
//   right  T or A --widen--> A --+
//
// The loops are written for the vectoriser: no branches, no calls, memory touched through memcpy so that any
// alignment is right, iterations independent. Every operation is exact or rounded once by IEEE 754, so the
// bits do not depend on the instruction set; only which NaN a partial holds may, and `finish` makes those
// canonical.
#pragma once
#include "kernels/isa.hpp"

#if defined(__clang__)
#define RONDO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RONDO_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace rondo::kernels::RONDO_ISA {

__extension__ using Int128 = __int128;

// What the operations need to know of an accumulator type. `Bits` is its unsigned twin.
template <class A>
struct Traits;
template <>
struct Traits<float> {
  using Bits = uint32_t;
  static constexpr bool floating = true;
  static constexpr Bits canonical_nan = 0x7fc00000;
};
template <>
struct Traits<double> {
  using Bits = uint64_t;
  static constexpr bool floating = true;
  static constexpr Bits canonical_nan = 0x7ff8000000000000;
};
template <>
struct Traits<int32_t> {
  using Bits = uint32_t;
  static constexpr bool floating = false;
};
template <>
struct Traits<int64_t> {
  using Bits = uint64_t;
  static constexpr bool floating = false;
};
template <>
struct Traits<Int128> {
  __extension__ using Bits = unsigned __int128;
  static constexpr bool floating = false;
};
template <class A>
using Bits = typename Traits<A>::Bits;

// Integers are added and multiplied as unsigned numbers: the same bits, and wrapping is defined.
struct Sum {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::floating)
      return left + right;
    else
      return static_cast<A>(static_cast<Bits<A>>(left) + static_cast<Bits<A>>(right));
  }
};

struct Prod {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::floating)
      return left * right;
    else
      return static_cast<A>(static_cast<Bits<A>>(left) * static_cast<Bits<A>>(right));
  }
};

// Equal floats differ in bits only when they are zeros: joining the sign bits makes -0 the smaller one. With
// a NaN on the right no comparison holds, which leaves right; a NaN on the left is put back last.
struct Min {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::floating) {
      const A joined =
          __builtin_bit_cast(A, __builtin_bit_cast(Bits<A>, left) | __builtin_bit_cast(Bits<A>, right));
      const A smaller = left < right ? left : right;
      const A ordered = left == right ? joined : smaller;
      return left != left ? left : ordered;
    } else {
      return left < right ? left : right;
    }
  }
};

struct Max {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::floating) {
      const A joined =
          __builtin_bit_cast(A, __builtin_bit_cast(Bits<A>, left) & __builtin_bit_cast(Bits<A>, right));
      const A larger = left > right ? left : right;
      const A ordered = left == right ? joined : larger;
      return left != left ? left : ordered;
    } else {
      return left > right ? left : right;
    }
  }
};

// What the chunk's owner does to a complete result.
struct Keep {
  template <class A>
  static A apply(A value, A) {
    return value;
  }
};

struct Divide {
  template <class A>
  static A apply(A value, A world) {
    return value / world;
  }
};

template <class T, class A>
T rounded(A value) {
  if constexpr (Traits<A>::floating)
    return value != value ? __builtin_bit_cast(T, Traits<T>::canonical_nan) : value;
  else
    return static_cast<T>(value);
}

template <class V>
V load(const std::byte* from, size_t index) {
  V value;
  __builtin_memcpy(&value, from + index * sizeof(V), sizeof(V));
  return value;
}

template <class V>
void store(std::byte* to, size_t index, V value) {
  __builtin_memcpy(to + index * sizeof(V), &value, sizeof(V));
}

template <class T, class A, class Op, class Scale>
struct Kernels {
  template <class Left, class Right>
  static void combine(std::byte* target, const std::byte* left, const std::byte* right,
                      size_t count) noexcept {
    RONDO_INDEPENDENT
    for (size_t i = 0; i < count; ++i) {
      store<A>(target, i, Op::template apply<A>(load<Left>(left, i), load<Right>(right, i)));
    }
  }

  template <class Left, class Right>
  static void finish(std::byte* target, const std::byte* left, const std::byte* right, size_t count,
                     uint32_t world) noexcept {
    const A ranks = static_cast<A>(world);
    RONDO_INDEPENDENT
    for (size_t i = 0; i < count; ++i) {
      const A value = Op::template apply<A>(load<Left>(left, i), load<Right>(right, i));
      store<T>(target, i, rounded<T, A>(Scale::template apply<A>(value, ranks)));
    }
  }

  static void finish_one(std::byte* target, const std::byte* source, size_t count, uint32_t world) noexcept {
    const A ranks = static_cast<A>(world);
    RONDO_INDEPENDENT
    for (size_t i = 0; i < count; ++i) {
      store<T>(target, i, rounded<T, A>(Scale::template apply<A>(load<T>(source, i), ranks)));
    }
  }

  static constexpr Reducer reducer{
      .element_bytes = sizeof(T),
      .accumulator_bytes = sizeof(A),
      .narrow = combine<T, T>,
      .partial = combine<A, T>,
      .partials = combine<A, A>,
      .finish_narrow = finish<T, T>,
      .finish_partial = finish<A, T>,
      .finish = finish_one,
  };
};

template <class T, class A, class AverageAccumulator>
constexpr Row row{{
    Kernels<T, A, Sum, Keep>::reducer,
    Kernels<T, A, Prod, Keep>::reducer,
    Kernels<T, A, Min, Keep>::reducer,
    Kernels<T, A, Max, Keep>::reducer,
    Kernels<T, AverageAccumulator, Sum, Divide>::reducer,
}};

}  // namespace rondo::kernels::RONDO_ISA
