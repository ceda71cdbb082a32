#include "schedule/barrier.hpp"

#include <bit>

namespace rondo::schedule {
namespace {

uint32_t rounds(const Shape& shape) { return uint32_t(std::bit_width(shape.world - 1)); }

}  // namespace

uint32_t dissemination_chunks(const Shape& shape) { return rounds(shape) + 1; }

void dissemination_barrier(Rank rank, const Shape& shape, const Emit& emit) {
  const uint32_t world = shape.world, last = rounds(shape);
  const auto step = [&](StepKind kind, Buffer source, Buffer target, uint32_t round, uint32_t chunk,
                        uint32_t other) {
    emit({kind, 0, source, target, uint16_t(round), 1, chunk, other});
  };
  step(StepKind::copy, Buffer::input, Buffer::accumulator, 0, 0, 0);
  for (uint32_t k = 0; k < last; k++) {
    const uint32_t distance = uint32_t(1) << k;
    step(StepKind::send, Buffer::accumulator, Buffer::none, k, k, (rank + distance) % world);
    step(StepKind::recv, Buffer::none, Buffer::accumulator, k, k + 1, (rank + world - distance) % world);
    step(StepKind::reduce, Buffer::accumulator, Buffer::accumulator, k, k + 1, k);
  }
  step(StepKind::copy, Buffer::accumulator, Buffer::output, last, 0, last);
}

}  // namespace rondo::schedule
