// The instruction sets for which the reductions are compiled. The engine calls kernels::reducer, which takes
// the best that this processor runs; tests and benchmarks ask for each by name.
#pragma once
#include "kernels/reducer.hpp"

namespace rondo::kernels {

enum class Isa : uint8_t { baseline, avx2, avx512 };

/// False where the processor lacks it, or the build does (not x86-64, or an unable compiler).
bool runs(Isa isa) noexcept;
/// Only for an `isa` that runs. All give the same bits.
const Reducer& reducer(Isa isa, DataType type, Reduction reduction) noexcept;

// What the translation units of an instruction set provide.
struct Row {
  Reducer sum, prod, min, max, avg;
  Reducer bit_and{}, bit_or{}, bit_xor{};  // of integers
  Reducer premul_sum, weighted_avg{};      // the latter of floats
  Reducer min_num, max_num;
};
struct FloatRows {
  Row f64, f32;
};
struct NarrowFloatRows {
  Row f16, bf16, f8e4m3, f8e5m2;
};
struct IntegerRows {
  Row i8, u8, i16, u16, i32, u32, i64, u64;
};

}  // namespace rondo::kernels
