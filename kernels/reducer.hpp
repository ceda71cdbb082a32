// Reductions of one (element type, reduction): what the engine calls on every segment. Kernels know neither
// schedules nor links.
//
// A contribution travels narrow (in the element type), a partial wide (in the accumulator type), a result
// narrow. Inputs are widened exactly; `finish` scales or divides, makes NaN canonical and rounds once.
//
//   type                sum prod   min max    avg
//   f64 f32             itself     itself     itself, divided once at the end
//   f16 bf16 f8*        f32        itself     f32, likewise
//   i8 u8               itself     itself     32 bits, likewise, truncating toward zero
//   i16 u16 i32 u32     itself     itself     64 bits
//   i64 u64             itself     itself     128 bits
#pragma once
#include <cstddef>
#include <cstdint>

#include "rondo/types.hpp"

namespace rondo::kernels {

// Each works on `count` elements, at any alignment. `target` may equal `left` or `right` where their widths
// are equal; otherwise ranges are disjoint. Operand order is left op right.
struct Reducer {
  using Combine = void (*)(std::byte* target, const std::byte* left, const std::byte* right,
                           size_t count) noexcept;
  using Finish = void (*)(std::byte* target, const std::byte* left, const std::byte* right, size_t count,
                          uint32_t world) noexcept;
  using FinishTree = void (*)(std::byte* target, const std::byte* const* sources, uint32_t world,
                              size_t count) noexcept;
  using Convert = void (*)(std::byte* target, const std::byte* source, size_t count, uint32_t world) noexcept;

  uint32_t element_bytes, accumulator_bytes;
  Combine narrow;          // wide = narrow op narrow
  Combine partial;         // wide = wide op narrow
  Combine partials;        // wide = wide op wide
  Finish finish_narrow;    // narrow = finish(narrow op narrow)
  Finish finish_partial;   // narrow = finish(wide op narrow)
  Finish finish_partials;  // narrow = finish(wide op wide)
  Convert finish;          // narrow = finish(narrow), the only contribution (world 1)
  // narrow = finish(sources[0] op .. op sources[world-1]), all narrow, in the order of the canonical tree:
  // node (k,i) covers ranks [i*2^k, min((i+1)*2^k, world)); it is left op right, or left alone when right is
  // empty. One pass over memory. `target` may equal any of the sources. 1 <= world <= 2^20.
  FinishTree finish_tree;
};

/// The reducer of a type and a reduction. Every pair exists.
const Reducer& reducer(DataType type, Reduction reduction) noexcept;

}  // namespace rondo::kernels
