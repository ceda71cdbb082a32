// Reductions of integers: in the type itself, averages in one that holds the sum over 2^20 ranks.
#include "kernels/compose.hpp"
#include "kernels/weighted.hpp"

namespace rondo::kernels::RONDO_ISA {

// Signed and unsigned sums, products and bitwise results have the same bits, so both use the unsigned ones.
template <class T, class AverageAccumulator>
constexpr Row row{
    .sum = Direct<Bits<T>, Sum, AsItIs>::reducer,
    .prod = Direct<Bits<T>, Prod, AsItIs>::reducer,
    .min = Direct<T, Min, AsItIs>::reducer,
    .max = Direct<T, Max, AsItIs>::reducer,
    .avg = Staged<T, AverageAccumulator, Sum, Divide>::reducer,
    .bit_and = Direct<Bits<T>, BitAnd, AsItIs>::reducer,
    .bit_or = Direct<Bits<T>, BitOr, AsItIs>::reducer,
    .bit_xor = Direct<Bits<T>, BitXor, AsItIs>::reducer,
    .premul_sum = Weighted<Bits<T>, Bits<T>, AsItIs>::reducer,
    .min_num = Direct<T, Min, AsItIs>::reducer,
    .max_num = Direct<T, Max, AsItIs>::reducer,
};

extern const IntegerRows integer_rows;
const IntegerRows integer_rows{
    .i8 = row<int8_t, int32_t>,
    .u8 = row<uint8_t, int32_t>,
    .i16 = row<int16_t, int64_t>,
    .u16 = row<uint16_t, int64_t>,
    .i32 = row<int32_t, int64_t>,
    .u32 = row<uint32_t, int64_t>,
    .i64 = row<int64_t, Int128>,
    .u64 = row<uint64_t, Int128>,
};

}  // namespace rondo::kernels::RONDO_ISA
