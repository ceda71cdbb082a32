// Who has worked through which sequences: for those who want to see that each comes up once.
#pragma once
#include <cstdint>
#include <string>

#include "rondo/result.hpp"
#include "step.hpp"

namespace trainer {

/// Adds {"step", "ranks", "rank", "first", "count"} to the file at `path`, before this rank works through that part of
/// the step. The ranks may share the file. A step that was redone appears once more, with fewer ranks; the last counts.
rondo::Result<void> record(const std::string& path, uint64_t step, const Share& share);

}  // namespace trainer
