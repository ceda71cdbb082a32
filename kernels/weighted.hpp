// Weighted sums of all contributions at once, divided by one number at the end.
//
//   w0, source 0 --[widen]--> * --+
//                                 +--> + --+
//   w1, source 1 --[widen]--> * --+        +--> + --> / divisor --> finish, narrow --> target
//   w2, source 2 --[widen]--> * -----------+
//
// Up to eight contributions are multiplied and added in one loop; larger nodes of the canonical tree are added
// from blocks that hold their halves.
#pragma once
#include "kernels/tree.hpp"

namespace rondo::kernels::RONDO_ISA {

/// A weight as the accumulator type holds it: floats rounded, integers modulo their range.
template <class A>
A weight_of(double weight) {
  if constexpr (Traits<A>::kind == Kind::floating)
    return static_cast<A>(weight);
  else
    return weight < 0 ? static_cast<A>(static_cast<int64_t>(weight))
                      : static_cast<A>(static_cast<uint64_t>(weight));
}

/// As tree_of, of products.
template <class A, uint32_t first, uint32_t n>
[[gnu::always_inline]] inline A weighted_tree_of(const std::byte* const* at, const A* weights, size_t i) {
  if constexpr (n == 1) {
    return Prod::apply(weights[first], load<A>(at[first], i));
  } else {
    constexpr uint32_t left = left_half(n);
    return Sum::apply(weighted_tree_of<A, first, left>(at, weights, i),
                      weighted_tree_of<A, first + left, n - left>(at, weights, i));
  }
}

/// target[i] = finish(the tree of weights[k] * sources[k][i]), in one pass.
template <class A, class Finish, uint32_t n>
void reduce_weighted(std::byte* target, const std::byte* const* sources, const double* weights, size_t count,
                     A divisor) {
  const std::byte* at[n];
  A factors[n];
  for (uint32_t k = 0; k < n; ++k) {
    at[k] = sources[k];
    factors[k] = weight_of<A>(weights[k]);
  }
  RONDO_INDEPENDENT
  for (size_t i = 0; i < count; ++i)
    store<A>(target, i, Finish::template apply<A>(weighted_tree_of<A, 0, n>(at, factors, i), divisor));
}

/// One block of the canonical tree of products. Each level takes two blocks of stack.
template <class A, class Source>
struct WeightedTree {
  /// Of n >= 1 sources, `count` elements from `first` on.
  static void node(std::byte* target, const std::byte* const* sources, const double* weights, uint32_t n,
                   size_t first, size_t count) {
    switch (n) {
      case 1:
        return leaf<1>(target, sources, weights, first, count);
      case 2:
        return leaf<2>(target, sources, weights, first, count);
      case 3:
        return leaf<3>(target, sources, weights, first, count);
      case 4:
        return leaf<4>(target, sources, weights, first, count);
      case 8:
        return leaf<8>(target, sources, weights, first, count);
      default:
        break;
    }
    const uint32_t left = left_half(n);
    Block right;
    node(target, sources, weights, left, first, count);
    node(right.bytes, sources + left, weights + left, n - left, first, count);
    reduce_two<A, Sum, AsItIs>(target, target, right.bytes, count, 0);
  }

 private:
  template <uint32_t n>
  static void leaf(std::byte* target, const std::byte* const* sources, const double* weights, size_t first,
                   size_t count) {
    typename Source::Stage stages[n];
    const std::byte* at[n];
    for (uint32_t k = 0; k < n; ++k) at[k] = Source::block(sources[k], first, count, stages[k]);
    reduce_weighted<A, AsItIs, n>(target, at, weights, count, A(1));
  }
};

/// `Undivided` finishes what needs no division.
template <class T, class A, class Undivided>
struct Weighted {
  static void finish_weighted(std::byte* target, const std::byte* const* sources, const double* weights,
                              uint32_t n, double divisor, size_t count) noexcept {
    if constexpr (Traits<A>::kind == Kind::floating) {
      if (divisor != 1) return finish<Divide>(target, sources, weights, n, static_cast<A>(divisor), count);
    }
    finish<Undivided>(target, sources, weights, n, A(1), count);
  }

  static constexpr Reducer reducer{
      .element_bytes = sizeof(T),
      .accumulator_bytes = sizeof(A),
      .finish_weighted = finish_weighted,
  };

 private:
  template <class Finish>
  static void finish(std::byte* target, const std::byte* const* sources, const double* weights, uint32_t n,
                     A divisor, size_t count) {
    if constexpr (std::is_same_v<T, A>)
      finish_direct<Finish>(target, sources, weights, n, divisor, count);
    else
      in_blocks<A>(
          count, [=](size_t first, size_t in_block) __attribute__((always_inline)) {
            Block block;
            WeightedTree<A, Widened<T, A>>::node(block.bytes, sources, weights, n, first, in_block);
            Convert<T, A>::template narrow<Finish>(target + first * sizeof(T), block.bytes, in_block,
                                                   divisor);
          });
  }

  // The target is written only after all sources have been read to that place: it may be one of them.
  template <class Finish>
  static void finish_direct(std::byte* target, const std::byte* const* sources, const double* weights,
                            uint32_t n, A divisor, size_t count) {
    switch (n) {
      case 1:
        return reduce_weighted<A, Finish, 1>(target, sources, weights, count, divisor);
      case 2:
        return reduce_weighted<A, Finish, 2>(target, sources, weights, count, divisor);
      case 3:
        return reduce_weighted<A, Finish, 3>(target, sources, weights, count, divisor);
      case 4:
        return reduce_weighted<A, Finish, 4>(target, sources, weights, count, divisor);
      case 8:
        return reduce_weighted<A, Finish, 8>(target, sources, weights, count, divisor);
      default:
        break;
    }
    in_blocks<A>(
        count, [=](size_t first, size_t in_block) __attribute__((always_inline)) {
          Block block;
          WeightedTree<A, InPlace<A>>::node(block.bytes, sources, weights, n, first, in_block);
          finish_each<A, Finish>(target + first * sizeof(A), block.bytes, in_block, divisor);
        });
  }
};

}  // namespace rondo::kernels::RONDO_ISA
