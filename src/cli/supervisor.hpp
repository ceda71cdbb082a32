// The process between the front and the ranks; see launch.hpp.
#pragma once
#include <signal.h>

#include "base/descriptor.hpp"
#include "cli/launch.hpp"

namespace rondo::cli {

/// `signals` are blocked and handled here; the ranks start with `mask`. Returns the exit code when nothing is
/// left.
int supervise(const LaunchSpec& spec, Descriptor lifeline, const sigset_t& signals, const sigset_t& mask);

}  // namespace rondo::cli
