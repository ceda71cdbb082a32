// What is done to one element: the operations, and how a result is finished.
//
// This file and those on top of it (loops, half_instructions, convert, tree, compose) are compiled once per
// instruction set, in the namespace that RONDO_ISA names. Nothing in them may call an inline function of
// another header (always inlined ones excepted), or the linker could keep a copy of it that needs AVX for
// everybody.
//
// Written for the vectoriser: no branches, no calls. Every operation is exact or rounded once by IEEE 754, so
// the bits do not depend on the instruction set; only which NaN a partial holds may, and finishing makes
// those canonical.
#pragma once
#include <limits>
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

// What an operation works on: `enter` makes it from a value, `leave` makes it one again.
struct Plain {
  template <class A>
  static A enter(A value) {
    return value;
  }
  template <class A>
  static A leave(A value) {
    return value;
  }
};

struct Sum : Plain {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::kind == Kind::floating)
      return left + right;
    else
      return static_cast<A>(wrapping(left) + wrapping(right));
  }
};

struct Prod : Plain {
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::kind == Kind::floating)
      return left * right;
    else
      return static_cast<A>(wrapping(left) * wrapping(right));
  }
};

struct BitAnd : Plain {
  template <class A>
  static A apply(A left, A right) {
    return static_cast<A>(left & right);
  }
};
struct BitOr : Plain {
  template <class A>
  static A apply(A left, A right) {
    return static_cast<A>(left | right);
  }
};
struct BitXor : Plain {
  template <class A>
  static A apply(A left, A right) {
    return static_cast<A>(left ^ right);
  }
};

// Whether a NaN among the operands is the result, or only where all are NaN.
enum class Nan : uint8_t { wins, yields };

// Min and max of floats. Equal ones differ in bits only when they are zeros: joining the sign bits makes -0
// the smaller one. With a NaN on either side no comparison holds, which leaves right; what is to be left
// instead is put back last.
template <class A, class Order, Nan rule>
A ordered_float(A left, A right) {
  const Bits<A> l = __builtin_bit_cast(Bits<A>, left), r = __builtin_bit_cast(Bits<A>, right);
  const A zero = __builtin_bit_cast(A, Order::smaller ? l | r : l & r);
  const A first = Order::before(left, right) ? left : right;
  const A ordered = left == right ? zero : first;
  const A doubtful = rule == Nan::wins ? left : right;
  return doubtful != doubtful ? left : ordered;
}

// Narrow floats are ordered by keys, integers with the order of the numbers: their codes, those of negative
// numbers turned around, and for a NaN the key that comes before all others, or after them. -0 has a lower
// one than +0. Selections are made with masks, since compilers make branches of these conditions, which ends
// vectorisation.
template <class Format, class Order, Nan rule>
struct Keys {
  using Code = typename Format::Bits;
  using Key = std::make_signed_t<Code>;
  static constexpr Key magnitude{Format::magnitude}, sign{std::numeric_limits<Key>::min()},
      last_ordered{Format::last_ordered}, nan{Order::smaller == (rule == Nan::wins) ? sign : magnitude};

  static Key turned(Key key) { return static_cast<Key>(key ^ ((key >> (8 * sizeof(Key) - 1)) & magnitude)); }
  static Key mask(bool condition) { return static_cast<Key>(-static_cast<Key>(condition)); }

  static Key key(NarrowFloat<Format> number) {
    const auto code = static_cast<Key>(number.bits);
    const Key is_nan = mask(static_cast<Key>(code & magnitude) > last_ordered);
    return static_cast<Key>((turned(code) & ~is_nan) | (nan & is_nan));
  }
  static NarrowFloat<Format> number(Key key) {
    // The lowest key gives the code of all ones, which without its sign is the canonical NaN.
    static_assert(Format::canonical_nan == Format::magnitude);
    const Key code = turned(key), all_ones{-1};
    NarrowFloat<Format> number;
    number.bits = static_cast<Code>(code ^ (mask(code == all_ones) & sign));
    return number;
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
template <class Order, Nan rule>
struct Extremum {
  template <class A>
  static auto enter(A value) {
    if constexpr (Traits<A>::kind == Kind::narrow_float)
      return Keys<typename A::Format, Order, rule>::key(value);
    else
      return value;
  }
  template <class A, class V>
  static A leave(V value) {
    if constexpr (Traits<A>::kind == Kind::narrow_float)
      return Keys<typename A::Format, Order, rule>::number(value);
    else
      return value;
  }
  template <class A>
  static A apply(A left, A right) {
    if constexpr (Traits<A>::kind == Kind::floating)
      return ordered_float<A, Order, rule>(left, right);
    else
      return Order::before(left, right) ? left : right;
  }
};
using Min = Extremum<Smaller, Nan::wins>;
using Max = Extremum<Larger, Nan::wins>;
using MinNum = Extremum<Smaller, Nan::yields>;
using MaxNum = Extremum<Larger, Nan::yields>;

// ---- what the chunk's owner does to a complete result; divisors are numbers of ranks or sums of weights

template <class A>
A canonical(A value) {
  if constexpr (Traits<A>::kind == Kind::floating)
    return value != value ? __builtin_bit_cast(A, Traits<A>::canonical_nan) : value;
  else
    return Min::leave<A>(Min::enter(value));
}

struct AsItIs {
  template <class A, class Divisor>
  static A apply(A value, Divisor) {
    return value;
  }
};

struct Keep {
  template <class A, class Divisor>
  static A apply(A value, Divisor) {
    return canonical(value);
  }
};

// Integers of up to 64 bits are sums of elements of up to 32 bits over at most 2^20 ranks, so below 2^53: a
// double holds them, and the quotient of two such numbers, rounded, never reaches the next integer. Vector
// units divide doubles, but not integers.
struct Divide {
  template <class A, class Divisor>
  static A apply(A value, Divisor divisor) {
    if constexpr (Traits<A>::kind == Kind::floating)
      return canonical(value / static_cast<A>(divisor));
    else if constexpr (sizeof(A) <= 8)
      return static_cast<A>(static_cast<double>(value) / static_cast<double>(divisor));
    else
      return value / static_cast<A>(divisor);
  }
};

}  // namespace rondo::kernels::RONDO_ISA
