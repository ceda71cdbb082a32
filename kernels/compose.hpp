// Puts loops and conversions together into Reducers.
//
//   element type = accumulator type          otherwise, in blocks that stay in the first cache
//
//   left ---+                                left ---widen--> block --+
//           +--> op [--> finish] --> target                           +--> op --> block --finish, narrow-->
//           target
//   right --+                                right --widen--> block --+
#pragma once
#include "kernels/convert.hpp"

namespace rondo::kernels::RONDO_ISA {

inline constexpr size_t block_bytes = 1024;
template <class A>
inline constexpr size_t block_count = block_bytes / sizeof(A);

struct Block {
  alignas(64) std::byte bytes[block_bytes];
};

constexpr size_t least(size_t a, size_t b) { return a < b ? a : b; }

/// Contributions in the accumulator type itself are read where they are.
template <class A>
struct InPlace {
  struct Stage {};
  static const std::byte* block(const std::byte* source, size_t first, size_t, Stage&) {
    return source + first * sizeof(A);
  }
};

/// Others are widened into a block.
template <class T, class A>
struct Widened {
  using Stage = Block;
  static const std::byte* block(const std::byte* source, size_t first, size_t count, Stage& stage) {
    Convert<T, A>::widen(stage.bytes, source + first * sizeof(T), count);
    return stage.bytes;
  }
};

/// One block of the canonical tree: node (k,i) is left op right, where right may be empty.
///
///   n = 7       .-------op-------.
///           .--op--.          .--op--.
///          op      op        op      |
///         0  1    2  3      4  5     6
///
/// Up to eight sources are joined in one loop where that is their shape, larger nodes from their halves.
template <class A, class Op, class Source>
struct Tree {
  static void node(std::byte* target, const std::byte* const* sources, uint32_t n, size_t first,
                   size_t count) {
    switch (n) {
      case 2:
        return leaf<2>(target, sources, first, count);
      case 3:
        return leaf<3>(target, sources, first, count);
      case 4:
        return leaf<4>(target, sources, first, count);
      case 8:
        return leaf<8>(target, sources, first, count);
      default:
        break;
    }
    const uint32_t left = left_half(n);
    node(target, sources, left, first, count);
    if (n - left == 1) {
      typename Source::Stage stage;
      const std::byte* right = Source::block(sources[left], first, count, stage);
      reduce_two<A, Op, AsItIs>(target, target, right, count, 0);
    } else {
      Block right;
      node(right.bytes, sources + left, n - left, first, count);
      reduce_two<A, Op, AsItIs>(target, target, right.bytes, count, 0);
    }
  }

 private:
  template <uint32_t n>
  static void leaf(std::byte* target, const std::byte* const* sources, size_t first, size_t count) {
    typename Source::Stage stages[n];
    const std::byte* at[n];
    for (uint32_t k = 0; k < n; ++k) at[k] = Source::block(sources[k], first, count, stages[k]);
    reduce<A, Op, AsItIs, n>(target, at, count, 0);
  }
};

/// `FinishOne` is for a single contribution, `Finish` for what `Op` has given.
template <class A, class Op, class Finish, class FinishOne = Finish>
struct Direct {
  static void combine(std::byte* target, const std::byte* left, const std::byte* right,
                      size_t count) noexcept {
    reduce_two<A, Op, AsItIs>(target, left, right, count, 0);
  }
  static void finish(std::byte* target, const std::byte* left, const std::byte* right, size_t count,
                     uint32_t world) noexcept {
    reduce_two<A, Op, Finish>(target, left, right, count, world);
  }
  static void finish_one(std::byte* target, const std::byte* source, size_t count, uint32_t world) noexcept {
    finish_each<A, FinishOne>(target, source, count, world);
  }
  // The target is written only after all sources have been read to that place: it may be one of them.
  static void finish_tree(std::byte* target, const std::byte* const* sources, uint32_t world,
                          size_t count) noexcept {
    switch (world) {
      case 1:
        return finish_one(target, sources[0], count, world);
      case 2:
        return reduce<A, Op, Finish, 2>(target, sources, count, world);
      case 3:
        return reduce<A, Op, Finish, 3>(target, sources, count, world);
      case 4:
        return reduce<A, Op, Finish, 4>(target, sources, count, world);
      case 8:
        return reduce<A, Op, Finish, 8>(target, sources, count, world);
      default:
        break;
    }
    Block block;
    for (size_t first = 0; first < count; first += block_count<A>) {
      const size_t n = least(block_count<A>, count - first);
      Tree<A, Op, InPlace<A>>::node(block.bytes, sources, world, first, n);
      finish_one(target + first * sizeof(A), block.bytes, n, world);
    }
  }

  static constexpr Reducer reducer{
      .element_bytes = sizeof(A),
      .accumulator_bytes = sizeof(A),
      .narrow = combine,
      .partial = combine,
      .partials = combine,
      .finish_narrow = finish,
      .finish_partial = finish,
      .finish = finish_one,
      .finish_tree = finish_tree,
  };
};

template <class T, class A, class Op, class Finish>
struct Staged {
  using C = Convert<T, A>;

  static void narrow(std::byte* target, const std::byte* left, const std::byte* right,
                     size_t count) noexcept {
    for (size_t first = 0; first < count; first += block_count<A>) {
      const size_t n = least(block_count<A>, count - first);
      std::byte* const to = target + first * sizeof(A);
      Block block;
      C::widen(to, left + first * sizeof(T), n);
      C::widen(block.bytes, right + first * sizeof(T), n);
      reduce_two<A, Op, AsItIs>(to, to, block.bytes, n, 0);
    }
  }
  static void partial(std::byte* target, const std::byte* left, const std::byte* right,
                      size_t count) noexcept {
    for (size_t first = 0; first < count; first += block_count<A>) {
      const size_t n = least(block_count<A>, count - first);
      Block block;
      C::widen(block.bytes, right + first * sizeof(T), n);
      reduce_two<A, Op, AsItIs>(target + first * sizeof(A), left + first * sizeof(A), block.bytes, n, 0);
    }
  }
  static void partials(std::byte* target, const std::byte* left, const std::byte* right,
                       size_t count) noexcept {
    reduce_two<A, Op, AsItIs>(target, left, right, count, 0);
  }
  static void finish_narrow(std::byte* target, const std::byte* left, const std::byte* right, size_t count,
                            uint32_t world) noexcept {
    const std::byte* const sources[]{left, right};
    finish_nodes(target, sources, 2, count, world);
  }
  static void finish_partial(std::byte* target, const std::byte* left, const std::byte* right, size_t count,
                             uint32_t world) noexcept {
    for (size_t first = 0; first < count; first += block_count<A>) {
      const size_t n = least(block_count<A>, count - first);
      Block block;
      C::widen(block.bytes, right + first * sizeof(T), n);
      reduce_two<A, Op, AsItIs>(block.bytes, left + first * sizeof(A), block.bytes, n, 0);
      C::template narrow<Finish>(target + first * sizeof(T), block.bytes, n, world);
    }
  }
  static void finish_one(std::byte* target, const std::byte* source, size_t count, uint32_t world) noexcept {
    for (size_t first = 0; first < count; first += block_count<A>) {
      const size_t n = least(block_count<A>, count - first);
      Block block;
      C::widen(block.bytes, source + first * sizeof(T), n);
      C::template narrow<Finish>(target + first * sizeof(T), block.bytes, n, world);
    }
  }
  static void finish_tree(std::byte* target, const std::byte* const* sources, uint32_t world,
                          size_t count) noexcept {
    if (world == 1)
      finish_one(target, sources[0], count, world);
    else
      finish_nodes(target, sources, world, count, world);
  }

  static constexpr Reducer reducer{
      .element_bytes = sizeof(T),
      .accumulator_bytes = sizeof(A),
      .narrow = narrow,
      .partial = partial,
      .partials = partials,
      .finish_narrow = finish_narrow,
      .finish_partial = finish_partial,
      .finish = finish_one,
      .finish_tree = finish_tree,
  };

 private:
  static void finish_nodes(std::byte* target, const std::byte* const* sources, uint32_t n_sources,
                           size_t count, uint32_t world) {
    for (size_t first = 0; first < count; first += block_count<A>) {
      const size_t n = least(block_count<A>, count - first);
      Block block;
      Tree<A, Op, Widened<T, A>>::node(block.bytes, sources, n_sources, first, n);
      C::template narrow<Finish>(target + first * sizeof(T), block.bytes, n, world);
    }
  }
};

}  // namespace rondo::kernels::RONDO_ISA
