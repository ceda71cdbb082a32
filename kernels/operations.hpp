// What is done to one element: the operations, and how a result is finished.
//
// This file, loops.hpp, convert.hpp and compose.hpp are compiled once per instruction set, in the namespace
// that RONDO_ISA names. Nothing in them may call an inline function of another header (always inlined ones
// excepted), or the linker could keep a copy of it that needs AVX for everybody.
//
// Written for the vectoriser: no branches, no calls. Every operation is exact or rounded once by IEEE 754, so
// the bits do not depend on the instruction set; only which NaN a partial holds may, and finishing makes
// those canonical.
#pragma once
#include <type_traits>

#include "kernels/isa.hpp"

namespace rondo::kernels::RONDO_ISA {

__extension__ using Int128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

enum class Kind : uint8_t { floating, integer, narrow_float };

// What the operations need to know of an accumulator type. `Bits` is its unsigned twin.
template <class A>
struct Traits {
  using Bits = std::make_unsigned_t<A>;
  static constexpr Kind kind = Kind::integer;
};
template <>
struct Traits<Int128> {
  using Bits = Unsigned128;
  static constexpr Kind kind = Kind::integer;
};
template <>
struct Traits<float> {
  using Bits = uint32_t;
  static constexpr Kind kind = Kind::floating;
  static constexpr Bits canonical_nan = 0x7fc00000;
};
template <>
struct Traits<double> {
  using Bits = uint64_t;
  static constexpr Kind kind = Kind::floating;
  static constexpr Bits canonical_nan = 0x7ff8000000000000;
};
// Only min and max work in these types themselves.
template <class Format>
struct Traits<NarrowFloat<Format>> {
  using Bits = typename Format::Bits;
  static constexpr Kind kind = Kind::narrow_float;
};
template <class A>
using Bits = typename Traits<A>::Bits;

// Integers are added and multiplied as unsigned numbers, which are at least as wide as unsigned int lest they
// be promoted to int: the same bits, and wrapping is defined.
template <class A>
constexpr auto wrapping(A value) {
  return static_cast<Bits<A>>(value) + 0u;
}

struct Sum {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::kind == Kind::floating)
      return left + right;
    else
      return static_cast<A>(wrapping(left) + wrapping(right));
  }
};

struct Prod {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::kind == Kind::floating)
      return left * right;
    else
      return static_cast<A>(wrapping(left) * wrapping(right));
  }
};

// Min and max of floats. Equal ones differ in bits only when they are zeros: joining the sign bits makes -0
// the smaller one. With a NaN on the right no comparison holds, which leaves right; a NaN on the left is put
// back last.
template <class A, class Order>
A ordered_float(A left, A right) {
  const Bits<A> l = __builtin_bit_cast(Bits<A>, left), r = __builtin_bit_cast(Bits<A>, right);
  const A zero = __builtin_bit_cast(A, Order::smaller ? l | r : l & r);
  const A first = Order::before(left, right) ? left : right;
  const A ordered = left == right ? zero : first;
  return left != left ? left : ordered;
}

// Of narrow floats: codes have the order of their numbers once those of negative numbers are turned around,
// also for the zeros. Any NaN gives the canonical one at
// once, which leaves nothing to finish.
template <class Format, class Order>
NarrowFloat<Format> ordered_narrow(NarrowFloat<Format> left, NarrowFloat<Format> right) {
  using B = typename Format::Bits;
  using Key = std::make_signed_t<B>;
  constexpr B magnitude{Format::magnitude}, last_ordered{Format::last_ordered};
  const auto key = [](B code) {
    const auto negative = static_cast<B>(static_cast<Key>(code) < 0 ? magnitude : 0);
    return static_cast<Key>(code ^ negative);
  };
  const B first = Order::before(key(left.bits), key(right.bits)) ? left.bits : right.bits;
  const bool left_ordered = static_cast<B>(left.bits & magnitude) <= last_ordered,
             right_ordered = static_cast<B>(right.bits & magnitude) <= last_ordered;
  NarrowFloat<Format> result;
  result.bits = left_ordered & right_ordered ? first : B{Format::canonical_nan};
  return result;
}

template <class Order>
struct Extremum {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::kind == Kind::floating)
      return ordered_float<A, Order>(left, right);
    else if constexpr (Traits<A>::kind == Kind::narrow_float)
      return ordered_narrow<typename A::Format, Order>(left, right);
    else
      return Order::before(left, right) ? left : right;
  }
};
struct Smaller {
  static constexpr bool smaller = true;
  template <class V>
  static bool before(V left, V right) {
    return left < right;
  }
};
struct Larger {
  static constexpr bool smaller = false;
  template <class V>
  static bool before(V left, V right) {
    return left > right;
  }
};
using Min = Extremum<Smaller>;
using Max = Extremum<Larger>;

// ---- what the chunk's owner does to a complete result

template <class A>
A canonical(A value) {
  if constexpr (Traits<A>::kind == Kind::floating)
    return value != value ? __builtin_bit_cast(A, Traits<A>::canonical_nan) : value;
  else
    return Min::apply(value, value);  // which sees to NaN
}

struct AsItIs {
  template <class A>
  static A apply(A value, uint32_t) {
    return value;
  }
};

struct Keep {
  template <class A>
  static A apply(A value, uint32_t) {
    return canonical(value);
  }
};

// Integers of up to 64 bits are sums of elements of up to 32 bits over at most 2^20 ranks, so below 2^53: a
// double holds them, and the quotient of two such numbers, rounded, never reaches the next integer. Vector
// units divide doubles, but not integers.
struct Divide {
  template <class A>
  static A apply(A value, uint32_t world) {
    if constexpr (Traits<A>::kind == Kind::floating)
      return canonical(value / static_cast<A>(world));
    else if constexpr (sizeof(A) <= 8)
      return static_cast<A>(static_cast<double>(value) / static_cast<double>(world));
    else
      return value / static_cast<A>(world);
  }
};

}  // namespace rondo::kernels::RONDO_ISA
