// Conversions by way of the processor's own ones between binary16 and f32 (F16C, AVX-512), sixteen elements
// at a time. They round to nearest, keep subnormals whatever the floating-point flags, and give the same bits
// as NarrowFormat. The 8-bit floats are widened through binary16, which holds them all.
#pragma once
#include "kernels/loops.hpp"

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>  // its functions are always inlined
#endif

namespace rondo::kernels::RONDO_ISA {

#if defined(__F16C__) || defined(__AVX512F__)

inline constexpr size_t lanes = 16;

#if defined(__AVX512F__)

// The masked forms with nothing masked: in the others g++ 12 sees an uninitialised value.
template <int scale>
void store_widened(std::byte* target, __m256i halves) {
  const __m512 value = _mm512_maskz_cvtph_ps(0xffff, halves);
  _mm512_storeu_ps(target,
                   scale == 1 ? value : _mm512_mul_ps(value, _mm512_set1_ps(static_cast<float>(scale))));
}

template <class Finish, class Divisor>
void store_narrowed(std::byte* target, const std::byte* source, Divisor divisor) {
  __m512 value = _mm512_loadu_ps(source);
  if constexpr (std::is_same_v<Finish, Divide>)
    value = _mm512_div_ps(value, _mm512_set1_ps(static_cast<float>(divisor)));
  // A NaN of all ones is narrowed to the canonical one.
  const __m512 ones = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fffffff));
  value = _mm512_mask_mov_ps(value, _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q), ones);
  const __m256i halves = _mm512_maskz_cvtps_ph(0xffff, value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), halves);
}

#else

template <int scale>
void store_widened(std::byte* target, __m256i halves) {
  const auto eight = [target](size_t first, __m128i half) {
    const __m256 value = _mm256_cvtph_ps(half);
    _mm256_storeu_ps(reinterpret_cast<float*>(target) + first,
                     scale == 1 ? value : _mm256_mul_ps(value, _mm256_set1_ps(static_cast<float>(scale))));
  };
  eight(0, _mm256_castsi256_si128(halves));
  eight(8, _mm256_extracti128_si256(halves, 1));
}

template <class Finish, class Divisor>
void store_narrowed(std::byte* target, const std::byte* source, Divisor divisor) {
  for (size_t first = 0; first < lanes; first += 8) {
    __m256 value = _mm256_loadu_ps(reinterpret_cast<const float*>(source) + first);
    if constexpr (std::is_same_v<Finish, Divide>)
      value = _mm256_div_ps(value, _mm256_set1_ps(static_cast<float>(divisor)));
    // A NaN of all ones is narrowed to the canonical one.
    const __m256 ones = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    value = _mm256_blendv_ps(value, ones, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + 2 * first),
                     _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
}

#endif

inline __m256i load_sixteen(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
// Each in the low half of 16 bits.
inline __m256i load_sixteen_bytes(const void* at) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(at)));
}

// Sixteen numbers as binary16, `scale` times too small.
template <class Format>
struct AsHalves;
template <>
struct AsHalves<float16::Format> {
  static constexpr int scale = 1;
  static __m256i load(const std::byte* at) { return load_sixteen(at); }
};
template <>
struct AsHalves<float8_e5m2::Format> {  // the upper half of a binary16
  static constexpr int scale = 1;
  static __m256i load(const std::byte* at) { return _mm256_slli_epi16(load_sixteen_bytes(at), 8); }
};
template <>
struct AsHalves<float8_e4m3::Format> {  // a bias of 7 in the place of one of 15, and NaN to be put right
  static constexpr int scale = 256;
  static __m256i load(const std::byte* at) {
    const __m256i codes = load_sixteen_bytes(at), magnitude = _mm256_set1_epi16(0x7f);
    const __m256i number = _mm256_and_si256(codes, magnitude);
    const __m256i sign = _mm256_slli_epi16(_mm256_andnot_si256(magnitude, codes), 8);
    const __m256i nan = _mm256_cmpeq_epi16(number, magnitude);
    return _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi16(number, 7), sign), nan);
  }
};

/// How many elements, from the first on, have been converted; the others are left to the caller.
template <class Format>
size_t widen_by_instructions(std::byte* target, const std::byte* source, size_t count) {
  size_t done = 0;
  if constexpr (requires { AsHalves<Format>::scale; }) {
    for (; done + lanes <= count; done += lanes) {
      const __m256i halves = AsHalves<Format>::load(source + done * sizeof(typename Format::Bits));
      store_widened<AsHalves<Format>::scale>(target + done * sizeof(float), halves);
    }
  }
  return done;
}
template <class Format, class Finish, class Divisor>
size_t narrow_by_instructions(std::byte* target, const std::byte* source, size_t count, Divisor divisor) {
  size_t done = 0;
  if constexpr (std::is_same_v<Format, float16::Format>) {
    for (; done + lanes <= count; done += lanes)
      store_narrowed<Finish>(target + 2 * done, source + 4 * done, divisor);
  }
  return done;
}

#else

template <class Format>
size_t widen_by_instructions(std::byte*, const std::byte*, size_t) {
  return 0;
}
template <class Format, class Finish, class Divisor>
size_t narrow_by_instructions(std::byte*, const std::byte*, size_t, Divisor) {
  return 0;
}

#endif

}  // namespace rondo::kernels::RONDO_ISA
