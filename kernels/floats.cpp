// Reductions of f64 and f32: everything in the type itself.
#include "kernels/compose.hpp"
#include "kernels/weighted.hpp"

namespace rondo::kernels::RONDO_ISA {

template <class T>
constexpr Row row{
    .sum = Direct<T, Sum, Keep>::reducer,
    .prod = Direct<T, Prod, Keep>::reducer,
    .min = Direct<T, Min, Keep>::reducer,
    .max = Direct<T, Max, Keep>::reducer,
    .avg = Direct<T, Sum, Divide>::reducer,
    .premul_sum = Weighted<T, T, Keep>::reducer,
    .weighted_avg = Weighted<T, T, Keep>::reducer,
    .min_num = Direct<T, MinNum, Keep>::reducer,
    .max_num = Direct<T, MaxNum, Keep>::reducer,
};

extern const FloatRows float_rows;
const FloatRows float_rows{.f64 = row<double>, .f32 = row<float>};

}  // namespace rondo::kernels::RONDO_ISA
