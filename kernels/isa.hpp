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

// What a translation unit provides: a reducer per Reduction per DataType, in the order of those enums. Plain
// arrays, because std::array's inline members must not be compiled with AVX.
struct Row {
  Reducer reducers[5];
};
struct Table {
  Row rows[4];
};
static_assert(static_cast<int>(Reduction::sum) == 0 && static_cast<int>(Reduction::prod) == 1 &&
              static_cast<int>(Reduction::min) == 2 && static_cast<int>(Reduction::max) == 3 &&
              static_cast<int>(Reduction::avg) == 4);
static_assert(static_cast<int>(DataType::f32) == 0 && static_cast<int>(DataType::f64) == 1 &&
              static_cast<int>(DataType::i32) == 2 && static_cast<int>(DataType::i64) == 3);

}  // namespace rondo::kernels
