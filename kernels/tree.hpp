// The canonical tree over any number of contributions, block by block.
#pragma once
#include "kernels/convert.hpp"

namespace rondo::kernels::RONDO_ISA {

inline constexpr size_t block_bytes = 1024;
template <class A>
inline constexpr size_t block_count = block_bytes / sizeof(A);

struct Block {
  alignas(64) std::byte bytes[block_bytes];
};

/// Calls body(first, n) for the elements from `first` on, n of them, of every block. To be inlined, body and
/// all: calls between the loops cost up to half the speed.
template <class A, class Body>
[[gnu::always_inline]] inline void in_blocks(size_t count, Body body) {
  for (size_t first = 0; first < count; first += block_count<A>)
    body(first, count - first < block_count<A> ? count - first : block_count<A>);
}

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
/// Up to eight sources are joined in one loop where that is their shape, larger nodes from their halves. Each
/// level takes one block of stack.
template <class A, class Op, class Source>
struct Tree {
  /// Of n >= 2 sources, `count` elements from `first` on.
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

}  // namespace rondo::kernels::RONDO_ISA
