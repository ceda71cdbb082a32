// Reductions of floats narrower than f32: sums and products in f32, min and max on the codes.
#include "kernels/compose.hpp"
#include "kernels/weighted.hpp"

namespace rondo::kernels::RONDO_ISA {

template <class T>
constexpr Row row{
    .sum = Staged<T, float, Sum, AsItIs>::reducer,
    .prod = Staged<T, float, Prod, AsItIs>::reducer,
    .min = Direct<T, Min, AsItIs, Keep>::reducer,
    .max = Direct<T, Max, AsItIs, Keep>::reducer,
    .avg = Staged<T, float, Sum, Divide>::reducer,
    .premul_sum = Weighted<T, float, AsItIs>::reducer,
    .weighted_avg = Weighted<T, float, AsItIs>::reducer,
    .min_num = Direct<T, MinNum, AsItIs, Keep>::reducer,
    .max_num = Direct<T, MaxNum, AsItIs, Keep>::reducer,
};

extern const NarrowFloatRows narrow_float_rows;
const NarrowFloatRows narrow_float_rows{
    .f16 = row<float16>,
    .bf16 = row<bfloat16>,
    .f8e4m3 = row<float8_e4m3>,
    .f8e5m2 = row<float8_e5m2>,
};

}  // namespace rondo::kernels::RONDO_ISA
