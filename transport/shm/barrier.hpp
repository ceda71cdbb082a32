// Memory barriers on the threads of other processes, from membarrier(2). Whoever publishes does so often, whoever
// goes to sleep does so seldom and pays microseconds anyway: so the sleeper makes the publishers' barrier for
// them (docs/memory-model.md).
#pragma once

namespace rondo::shm {

/// From now on the barriers of others reach this process. False where the kernel cannot.
bool take_part_in_barriers() noexcept;

/// A full barrier here and on every running thread of every process that takes part.
void barrier_everywhere() noexcept;

}  // namespace rondo::shm
