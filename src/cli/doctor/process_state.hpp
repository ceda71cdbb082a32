// The state of a running process that uses Rondo. Such a process listens at the abstract Unix socket
// "rondo-state-PID" (PID as the process itself sees it) and answers whoever connects with one JSON document, if
// that is of its own user:
//
//   rondo doctor --pid        connect ---------------->  the process
//                             <------- JSON, end of file
#pragma once
#include <sys/types.h>

#include <string>

#include "base/clock.hpp"
#include "rondo/result.hpp"

namespace rondo::cli::doctor {

inline constexpr milliseconds state_patience{2000};

/// The JSON text. Errors: invalid_argument (no such process), refused (not a Rondo process, or one that cannot
/// be asked from here; the message says why), timeout, mismatch (the answer is not JSON).
Result<std::string> process_state(pid_t pid, milliseconds patience = state_patience);

}  // namespace rondo::cli::doctor
