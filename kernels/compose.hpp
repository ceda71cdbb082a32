// Puts loops and conversions together into Reducers.
//
// Element type = accumulator type:
//
//   left ---+
//           +--> op [--> finish] --> target
//   right --+
//
// Otherwise, in blocks that stay in the first cache:
//
//   left ----widen--> block --+
//                             +--> op --> block --finish, narrow--> target
//   right ---widen--> block --+
#pragma once
#include "kernels/tree.hpp"

namespace rondo::kernels::RONDO_ISA {

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
    in_blocks<A>(
        count, [=](size_t first, size_t n) __attribute__((always_inline)) {
          Block block;
          Tree<A, Op, InPlace<A>>::node(block.bytes, sources, world, first, n);
          finish_one(target + first * sizeof(A), block.bytes, n, world);
        });
  }

  static constexpr Reducer reducer{
      .element_bytes = sizeof(A),
      .accumulator_bytes = sizeof(A),
      .narrow = combine,
      .partial = combine,
      .partials = combine,
      .finish_narrow = finish,
      .finish_partial = finish,
      .finish_partials = finish,
      .finish = finish_one,
      .finish_tree = finish_tree,
  };
};

template <class T, class A, class Op, class Finish>
struct Staged {
  using C = Convert<T, A>;

  static void narrow(std::byte* target, const std::byte* left, const std::byte* right,
                     size_t count) noexcept {
    in_blocks<A>(
        count, [=](size_t first, size_t n) __attribute__((always_inline)) {
          std::byte* const to = target + first * sizeof(A);
          Block block;
          C::widen(to, left + first * sizeof(T), n);
          C::widen(block.bytes, right + first * sizeof(T), n);
          reduce_two<A, Op, AsItIs>(to, to, block.bytes, n, 0);
        });
  }
  static void partial(std::byte* target, const std::byte* left, const std::byte* right,
                      size_t count) noexcept {
    in_blocks<A>(
        count, [=](size_t first, size_t n) __attribute__((always_inline)) {
          Block block;
          C::widen(block.bytes, right + first * sizeof(T), n);
          reduce_two<A, Op, AsItIs>(target + first * sizeof(A), left + first * sizeof(A), block.bytes, n, 0);
        });
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
    in_blocks<A>(
        count, [=](size_t first, size_t n) __attribute__((always_inline)) {
          Block block;
          C::widen(block.bytes, right + first * sizeof(T), n);
          reduce_two<A, Op, AsItIs>(block.bytes, left + first * sizeof(A), block.bytes, n, 0);
          C::template narrow<Finish>(target + first * sizeof(T), block.bytes, n, world);
        });
  }
  static void finish_partials(std::byte* target, const std::byte* left, const std::byte* right, size_t count,
                              uint32_t world) noexcept {
    in_blocks<A>(
        count, [=](size_t first, size_t n) __attribute__((always_inline)) {
          Block block;
          reduce_two<A, Op, AsItIs>(block.bytes, left + first * sizeof(A), right + first * sizeof(A), n, 0);
          C::template narrow<Finish>(target + first * sizeof(T), block.bytes, n, world);
        });
  }
  static void finish_one(std::byte* target, const std::byte* source, size_t count, uint32_t world) noexcept {
    in_blocks<A>(
        count, [=](size_t first, size_t n) __attribute__((always_inline)) {
          Block block;
          C::widen(block.bytes, source + first * sizeof(T), n);
          C::template narrow<Finish>(target + first * sizeof(T), block.bytes, n, world);
        });
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
      .finish_partials = finish_partials,
      .finish = finish_one,
      .finish_tree = finish_tree,
  };

 private:
  static void finish_nodes(std::byte* target, const std::byte* const* sources, uint32_t n_sources,
                           size_t count, uint32_t world) {
    in_blocks<A>(
        count, [=](size_t first, size_t n) __attribute__((always_inline)) {
          Block block;
          Tree<A, Op, Widened<T, A>>::node(block.bytes, sources, n_sources, first, n);
          C::template narrow<Finish>(target + first * sizeof(T), block.bytes, n, world);
        });
  }
};

}  // namespace rondo::kernels::RONDO_ISA
