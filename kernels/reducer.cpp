// Chooses, once, the best instruction set that this processor runs.
#include "kernels/reducer.hpp"

#include <cassert>

#include "kernels/isa.hpp"

namespace rondo::kernels {

namespace baseline {
extern const Table table;
}
#if RONDO_X86_KERNELS
namespace avx2 {
extern const Table table;
}
namespace avx512 {
extern const Table table;
}
#endif

namespace {

const Table& table_of(Isa isa) noexcept {
  switch (isa) {
    case Isa::baseline:
      return baseline::table;
#if RONDO_X86_KERNELS
    case Isa::avx2:
      return avx2::table;
    case Isa::avx512:
      return avx512::table;
#else
    case Isa::avx2:
    case Isa::avx512:
      break;
#endif
  }
  assert(false);
  return baseline::table;
}

const Table& best_table() noexcept {
  static const Table& best = table_of(runs(Isa::avx512) ? Isa::avx512
                                      : runs(Isa::avx2) ? Isa::avx2
                                                        : Isa::baseline);
  return best;
}

const Reducer& entry(const Table& table, DataType type, Reduction reduction) noexcept {
  return table.rows[static_cast<size_t>(type)].reducers[static_cast<size_t>(reduction)];
}

}  // namespace

bool runs(Isa isa) noexcept {
  switch (isa) {
    case Isa::baseline:
      return true;
#if RONDO_X86_KERNELS
    case Isa::avx2:
      return __builtin_cpu_supports("avx2");
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
