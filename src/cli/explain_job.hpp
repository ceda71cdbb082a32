// `rondo explain --pid`: why a running job uses the interface, the transport and the algorithms that it uses.
#pragma once
#include <sys/types.h>

namespace rondo::cli {

/// Asks the process (doctor/process_state.hpp) and prints what it says of each of its communicators; the exit code.
int explain_job(pid_t pid);

}  // namespace rondo::cli
