// Chooses, once, the best instruction set that this processor runs.
#include "kernels/reducer.hpp"

#include <cassert>

#include "kernels/isa.hpp"

#if RONDO_X86_KERNELS
#include <cpuid.h>
#endif

namespace rondo::kernels {

namespace baseline {
extern const FloatRows float_rows;
extern const NarrowFloatRows narrow_float_rows;
extern const IntegerRows integer_rows;
}  // namespace baseline
#if RONDO_X86_KERNELS
namespace avx2 {
extern const FloatRows float_rows;
extern const NarrowFloatRows narrow_float_rows;
extern const IntegerRows integer_rows;
}  // namespace avx2
namespace avx512 {
extern const FloatRows float_rows;
extern const NarrowFloatRows narrow_float_rows;
extern const IntegerRows integer_rows;
}  // namespace avx512
#endif

namespace {

struct Table {
  const FloatRows& floats;
  const NarrowFloatRows& narrow_floats;
  const IntegerRows& integers;
};

Table table_of(Isa isa) noexcept {
  switch (isa) {
    case Isa::baseline:
      break;
#if RONDO_X86_KERNELS
    case Isa::avx2:
      return {avx2::float_rows, avx2::narrow_float_rows, avx2::integer_rows};
    case Isa::avx512:
      return {avx512::float_rows, avx512::narrow_float_rows, avx512::integer_rows};
#else
    case Isa::avx2:
    case Isa::avx512:
      assert(false);
#endif
  }
  return {baseline::float_rows, baseline::narrow_float_rows, baseline::integer_rows};
}

const Row& row_of(const Table& table, DataType type) noexcept {
  switch (type) {
    case DataType::f64:
      return table.floats.f64;
    case DataType::f32:
      return table.floats.f32;
    case DataType::f16:
      return table.narrow_floats.f16;
    case DataType::bf16:
      return table.narrow_floats.bf16;
    case DataType::f8e4m3:
      return table.narrow_floats.f8e4m3;
    case DataType::f8e5m2:
      return table.narrow_floats.f8e5m2;
    case DataType::i8:
      return table.integers.i8;
    case DataType::u8:
      return table.integers.u8;
    case DataType::i16:
      return table.integers.i16;
    case DataType::u16:
      return table.integers.u16;
    case DataType::i32:
      return table.integers.i32;
    case DataType::u32:
      return table.integers.u32;
    case DataType::i64:
      return table.integers.i64;
    case DataType::u64:
      return table.integers.u64;
  }
  assert(false);
  return table.floats.f64;
}

const Reducer& entry(const Table& table, DataType type, Reduction reduction) noexcept {
  assert(is_defined(type, reduction));
  const Row& row = row_of(table, type);
  switch (reduction) {
    case Reduction::sum:
      return row.sum;
    case Reduction::prod:
      return row.prod;
    case Reduction::min:
      return row.min;
    case Reduction::max:
      return row.max;
    case Reduction::avg:
      return row.avg;
    case Reduction::bit_and:
      return row.bit_and;
    case Reduction::bit_or:
      return row.bit_or;
    case Reduction::bit_xor:
      return row.bit_xor;
    case Reduction::premul_sum:
      return row.premul_sum;
    case Reduction::weighted_avg:
      return row.weighted_avg;
    case Reduction::min_num:
      return row.min_num;
    case Reduction::max_num:
      return row.max_num;
  }
  assert(false);
  return row.sum;
}

const Table& best_table() noexcept {
  static const Table best = table_of(runs(Isa::avx512) ? Isa::avx512
                                     : runs(Isa::avx2) ? Isa::avx2
                                                       : Isa::baseline);
  return best;
}

#if RONDO_X86_KERNELS
// clang 14 does not know this feature by name.
bool has_f16c() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

bool runs(Isa isa) noexcept {
  switch (isa) {
    case Isa::baseline:
      return true;
#if RONDO_X86_KERNELS
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && has_f16c();
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    case Isa::avx2:
    case Isa::avx512:
      break;
#endif
  }
  return false;
}

const Reducer& reducer(Isa isa, DataType type, Reduction reduction) noexcept {
  assert(runs(isa));
  return entry(table_of(isa), type, reduction);
}

const Reducer& reducer(DataType type, Reduction reduction) noexcept {
  return entry(best_table(), type, reduction);
}

}  // namespace rondo::kernels
