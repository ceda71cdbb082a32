#include "schedule/payload.hpp"

#include "schedule/layout.hpp"
#include "schedule/program.hpp"

namespace rondo::schedule {

uint64_t payload_elements(const Schedule& schedule, uint64_t count, const Shape& shape, Rank rank) {
  const Layout layout(schedule.operation, count, schedule.chunks(shape), {rank, shape.world});
  uint64_t elements = 0;
  schedule.steps(rank, shape_of(schedule.operation, shape, rank), [&](const Step& step) {
    if (!sends(step)) return;
    for (uint32_t chunk = step.chunk; chunk < step.chunk + step.chunks; chunk++)
      elements += layout.extent(step.source, chunk).count;
  });
  return elements;
}

uint64_t payload_elements(const Schedule& schedule, uint64_t count, const Shape& shape) {
  uint64_t elements = 0;
  for (Rank rank = 0; rank < shape.world; rank++) elements += payload_elements(schedule, count, shape, rank);
  return elements;
}

}  // namespace rondo::schedule
