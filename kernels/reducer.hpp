// Reductions of one (element type, reduction): what the engine calls on every segment. Kernels know neither
// schedules nor links.
//
// A contribution travels narrow (in the element type), a partial wide (in the accumulator type), a result
// narrow. Inputs are widened exactly; `finish` scales or divides, makes NaN canonical and rounds once.
//
//   type                sum prod   min* max*  avg                                          bit_*
//   f64 f32             itself     itself     itself, divided once at the end
//   f16 bf16 f8*        f32        itself     f32, likewise
//   i8 u8               itself     itself     32 bits, likewise, truncating toward zero    itself
//   i16 u16 i32 u32     itself     itself     64 bits                                      itself
//   i64 u64             itself     itself     128 bits                                     itself
//
// A weighted reduction has the accumulator type of sum, but no partials: its owner reduces all contributions
// at once.
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
  using FinishWeighted = void (*)(std::byte* target, const std::byte* const* sources, const double* weights,
                                  uint32_t n, double divisor, size_t count) noexcept;
  using Convert = void (*)(std::byte* target, const std::byte* source, size_t count, uint32_t world) noexcept;

  uint32_t element_bytes = 0, accumulator_bytes = 0;

  // Of reductions that are not weighted; null in the others.
  Combine narrow = nullptr;          // wide = narrow op narrow
  Combine partial = nullptr;         // wide = wide op narrow
  Combine partials = nullptr;        // wide = wide op wide
  Finish finish_narrow = nullptr;    // narrow = finish(narrow op narrow)
  Finish finish_partial = nullptr;   // narrow = finish(wide op narrow)
  Finish finish_partials = nullptr;  // narrow = finish(wide op wide)
  Convert finish = nullptr;          // narrow = finish(narrow), the only contribution (world 1)
  // narrow = finish(sources[0] op .. op sources[world-1]), all narrow, in the order of the canonical tree:
  // node (k,i) covers ranks [i*2^k, min((i+1)*2^k, world)); it is left op right, or left alone when right is
  // empty. One pass over memory. `target` may equal any of the sources. 1 <= world <= 2^20.
  FinishTree finish_tree = nullptr;

  // Of weighted reductions; null in the others.
  // narrow = finish((weights[0] * sources[0] + .. + weights[n-1] * sources[n-1]) / divisor), all narrow, added
  // in the order of the canonical tree over these n. One pass over memory. `target` may equal any of the
  // sources. 1 <= n <= 2^20.
  //   floats    weights and divisor are rounded to the accumulator type; every product, every sum and the
  //             quotient is rounded once in it. A divisor of 1 costs nothing.
  //   integers  weights are whole numbers, -2^63 <= weight < 2^64; products and sums wrap; no division.
  FinishWeighted finish_weighted = nullptr;
};

/// The reducer of a type and a reduction, which must be defined for it (is_defined).
const Reducer& reducer(DataType type, Reduction reduction) noexcept;

}  // namespace rondo::kernels
