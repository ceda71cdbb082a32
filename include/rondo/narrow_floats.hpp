// Floating-point numbers narrower than float, as containers: they convert from and to float, and Rondo
// reduces them. Arithmetic is the user's own, in float.
//
//   type         sign exponent mantissa  largest  smallest > 0  infinities  canonical NaN
//   float16         1        5       10    65504         2^-24         yes         0x7fff
//   bfloat16        1        8        7  3.39e38        2^-133         yes         0x7fff
//   float8_e4m3     1        4        3      448          2^-9          no           0x7f
//   float8_e5m2     1        5        2    57344         2^-16         yes           0x7f
#pragma once
#include <cstdint>

namespace rondo {

// The conversions on bits, without branches, so that a loop over them is vectorised. Always inlined: a caller
// that is compiled for another instruction set must not leave a copy to the linker. They assume rounding to
// nearest, the default.
namespace detail {

/// One sign bit, `exponent_bits` with the usual bias, `mantissa_bits`. With infinities the largest exponent
/// is reserved for them and for NaN (IEEE 754); without, only the code of all ones is a NaN (OFP8's E4M3).
template <class Code, unsigned exponent_bits, unsigned mantissa_bits, bool has_infinity>
struct NarrowFormat {
  using Bits = Code;
  static constexpr uint32_t magnitude = (1u << (exponent_bits + mantissa_bits)) - 1;  // all but the sign
  static constexpr uint32_t canonical_nan = magnitude;
  /// The magnitude that stands for an overflow: infinity where there is one.
  static constexpr uint32_t overflow =
      has_infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : canonical_nan;
  /// Above it, magnitudes are NaN.
  static constexpr uint32_t last_ordered = has_infinity ? overflow : overflow - 1;

  /// Exact. A NaN stays one.
  [[gnu::always_inline]] static constexpr float widen(uint32_t bits) noexcept {
    const uint32_t shifted = (bits & magnitude) << shift;
    const uint32_t normal = shifted + rebias;
    // Below the smallest normal number: as a fraction of it, 1.fraction - 1.
    const float fraction =
        __builtin_bit_cast(float, normal + float_one_up) - __builtin_bit_cast(float, smallest_normal);
    const uint32_t small = __builtin_bit_cast(uint32_t, fraction);
    const uint32_t finite = (bits & magnitude) < (1u << mantissa_bits) ? small : normal;
    const uint32_t value = (bits & magnitude) < overflow ? finite : shifted | float_infinity;
    return __builtin_bit_cast(float, value | (bits >> (exponent_bits + mantissa_bits)) << 31);
  }

  /// Rounds to nearest, ties to even; NaN becomes the canonical one.
  [[gnu::always_inline]] static constexpr uint32_t narrow(float value) noexcept {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t absolute = bits & 0x7fffffff;
    // Rounding by adding just under half a unit, and the unit's own last bit for ties; a carry runs into the
    // exponent, as it should.
    const uint32_t normal =
        (absolute - rebias + (1u << (shift - 1)) - 1 + ((absolute >> shift) & 1)) >> shift;
    // Next to a number whose unit is the smallest subnormal, the addition itself rounds.
    const float aligned = __builtin_bit_cast(float, absolute) + __builtin_bit_cast(float, rounder);
    const uint32_t small = __builtin_bit_cast(uint32_t, aligned) - rounder;
    const uint32_t rounded = absolute < smallest_normal ? small : normal;
    const uint32_t limited = rounded < overflow ? rounded : overflow;
    const uint32_t sign = bits >> 31 << (exponent_bits + mantissa_bits);
    // Without infinities what is too large is a NaN, and so a NaN is too large.
    const bool nan = has_infinity ? absolute > float_infinity : limited == overflow;
    return nan ? canonical_nan : limited | sign;
  }

 private:
  static constexpr unsigned shift = 23 - mantissa_bits;
  static constexpr uint32_t float_infinity = 0x7f800000;
  static constexpr uint32_t float_one_up = 1u << 23;  // an exponent one higher
  static constexpr uint32_t rebias = (127u - ((1u << (exponent_bits - 1)) - 1)) << 23;
  static constexpr uint32_t smallest_normal = rebias + float_one_up;  // a float's bits, like the next
  static constexpr uint32_t rounder = rebias + ((shift + 1) << 23);
};

/// The upper half of a float.
struct Bfloat16Format {
  using Bits = uint16_t;
  static constexpr uint32_t magnitude = 0x7fff, canonical_nan = 0x7fff, overflow = 0x7f80,
                            last_ordered = 0x7f80;

  [[gnu::always_inline]] static constexpr float widen(uint32_t bits) noexcept {
    return __builtin_bit_cast(float, bits << 16);
  }
  [[gnu::always_inline]] static constexpr uint32_t narrow(float value) noexcept {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (bits & 0x7fffffff) > 0x7f800000 ? canonical_nan : rounded;
  }
};

}  // namespace detail

/// A number in one of the formats above. Trivially copyable, and of the format's size.
template <class F>
struct NarrowFloat {
  using Format = F;
  using Bits = typename F::Bits;
  Bits bits;

  NarrowFloat() = default;
  /// The nearest number, of two equally near ones the even one. What is too large becomes infinity, in
  /// float8_e4m3 NaN; every NaN becomes the canonical one.
  constexpr explicit NarrowFloat(float value) noexcept : bits(static_cast<Bits>(Format::narrow(value))) {}
  static constexpr NarrowFloat from_bits(Bits code) noexcept {
    NarrowFloat number(0.0f);
    number.bits = code;
    return number;
  }

  /// Exact.
  constexpr explicit operator float() const noexcept { return Format::widen(bits); }
  /// As float compares: -0 equals +0, NaN equals nothing.
  friend constexpr bool operator==(NarrowFloat left, NarrowFloat right) noexcept {
    return float(left) == float(right);
  }
};

/// IEEE 754-2019 binary16, "half".
using float16 = NarrowFloat<detail::NarrowFormat<uint16_t, 5, 10, true>>;
/// bfloat16: the range of float with 8 significant bits.
using bfloat16 = NarrowFloat<detail::Bfloat16Format>;
/// E4M3 of "OCP 8-bit Floating Point Specification (OFP8)", revision 1.0. It has no infinity: what rounds
/// beyond 448 becomes NaN (the specification's non-saturating conversion).
using float8_e4m3 = NarrowFloat<detail::NarrowFormat<uint8_t, 4, 3, false>>;
/// E5M2 of the same specification, an IEEE 754-like format with infinities.
using float8_e5m2 = NarrowFloat<detail::NarrowFormat<uint8_t, 5, 2, true>>;

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2 && sizeof(float8_e4m3) == 1 &&
              sizeof(float8_e5m2) == 1);

}  // namespace rondo
