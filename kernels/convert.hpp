// Conversions between an element type and a wider accumulator type, over whole blocks.
#pragma once
#include "kernels/half_instructions.hpp"

namespace rondo::kernels::RONDO_ISA {

/// T to A exactly; A back to T after `Finish`, rounded once. For integers.
template <class T, class A>
struct Convert {
  static void widen(std::byte* target, const std::byte* source, size_t count) {
    RONDO_INDEPENDENT
    for (size_t i = 0; i < count; ++i) store<A>(target, i, static_cast<A>(load<T>(source, i)));
  }
  template <class Finish, class Divisor>
  static void narrow(std::byte* target, const std::byte* source, size_t count, Divisor divisor) {
    RONDO_INDEPENDENT
    for (size_t i = 0; i < count; ++i)
      store<T>(target, i, static_cast<T>(Finish::template apply<A>(load<A>(source, i), divisor)));
  }
};

template <class Format>
struct Convert<NarrowFloat<Format>, float> {
  using Code = typename Format::Bits;

  static void widen(std::byte* target, const std::byte* source, size_t count) {
    const size_t done = widen_by_instructions<Format>(target, source, count);
    RONDO_INDEPENDENT
    for (size_t i = done; i < count; ++i) store<float>(target, i, Format::widen(load<Code>(source, i)));
  }
  template <class Finish, class Divisor>
  static void narrow(std::byte* target, const std::byte* source, size_t count, Divisor divisor) {
    const size_t done = narrow_by_instructions<Format, Finish>(target, source, count, divisor);
    RONDO_INDEPENDENT
    for (size_t i = done; i < count; ++i) {
      const float value = Finish::template apply<float>(load<float>(source, i), divisor);
      store<Code>(target, i, static_cast<Code>(Format::narrow(value)));
    }
  }
};

}  // namespace rondo::kernels::RONDO_ISA
