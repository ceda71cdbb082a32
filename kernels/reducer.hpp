// Reductions of one (element type, reduction): what the engine calls on every segment. Kernels know neither
// schedules nor links.
//
// A contribution travels narrow (in the element type), a partial wide (in the accumulator type), a result
// narrow. Inputs are widened exactly; `finish` scales or divides, makes NaN canonical and rounds once.
//
//   type        sum prod min max   avg
//   f32         f32                f32, divided once at the end
//   f64         f64                f64
//   i32         i32 (wraps)        i64, divided once, truncating toward zero
//   i64         i64 (wraps)        128 bits
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
  using Convert = void (*)(std::byte* target, const std::byte* source, size_t count, uint32_t world) noexcept;

  uint32_t element_bytes, accumulator_bytes;
  Combine narrow;         // wide = narrow op narrow
  Combine partial;        // wide = wide op narrow
  Combine partials;       // wide = wide op wide
  Finish finish_narrow;   // narrow = finish(narrow op narrow)
  Finish finish_partial;  // narrow = finish(wide op narrow)
  Convert finish;         // narrow = finish(narrow), the only contribution (world 1)
};

/// The reducer of a type and a reduction. Every pair exists.
const Reducer& reducer(DataType type, Reduction reduction) noexcept;

}  // namespace rondo::kernels
