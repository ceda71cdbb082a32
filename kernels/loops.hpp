// The loops over elements of an accumulator type. Memory is touched through memcpy, so that any alignment is
// right; iterations are independent.
#pragma once
#include "kernels/operations.hpp"

#if defined(__clang__)
#define RONDO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RONDO_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace rondo::kernels::RONDO_ISA {

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

/// How many of `n` sources the left half of their node in the canonical tree covers: the largest power of two
/// below n.
constexpr uint32_t left_half(uint32_t n) {
  uint32_t half = 1;
  while (half < n - half) half *= 2;
  return half;
}

template <class A, class Op, uint32_t first, uint32_t n>
[[gnu::always_inline]] inline auto tree_of(const std::byte* const* at, size_t i) {
  if constexpr (n == 1) {
    return Op::enter(load<A>(at[first], i));
  } else {
    constexpr uint32_t left = left_half(n);
    return Op::apply(tree_of<A, Op, first, left>(at, i), tree_of<A, Op, first + left, n - left>(at, i));
  }
}

/// target[i] = finish(the tree of sources[0][i] .. sources[n-1][i]), in one pass.
template <class A, class Op, class Finish, uint32_t n>
void reduce(std::byte* target, const std::byte* const* sources, size_t count, uint32_t world) {
  const std::byte* at[n];  // a copy that no store through target can be thought to change
  for (uint32_t k = 0; k < n; ++k) at[k] = sources[k];
  RONDO_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    store<A>(target, i, Finish::template apply<A>(Op::template leave<A>(tree_of<A, Op, 0, n>(at, i)), world));
  }
}

template <class A, class Op, class Finish>
void reduce_two(std::byte* target, const std::byte* left, const std::byte* right, size_t count,
                uint32_t world) {
  const std::byte* const sources[]{left, right};
  reduce<A, Op, Finish, 2>(target, sources, count, world);
}

template <class A, class Finish, class Divisor>
void finish_each(std::byte* target, const std::byte* source, size_t count, Divisor divisor) {
  RONDO_INDEPENDENT
  for (size_t i = 0; i < count; ++i)
    store<A>(target, i, Finish::template apply<A>(load<A>(source, i), divisor));
}

}  // namespace rondo::kernels::RONDO_ISA
