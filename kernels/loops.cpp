// Compiled once per instruction set, each time with its own flags and its own RONDO_ISA (see meson.build).
#include "kernels/loops.hpp"

namespace rondo::kernels::RONDO_ISA {

extern const Table table;
const Table table{{
    row<float, float, float>,
    row<double, double, double>,
    row<int32_t, int32_t, int64_t>,
    row<int64_t, int64_t, Int128>,
}};

}  // namespace rondo::kernels::RONDO_ISA
