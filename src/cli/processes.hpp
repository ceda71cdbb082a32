// The processes below this one.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace rondo::cli {

struct Process {
  pid_t pid = 0, parent = 0;
  bool zombie = false;
};

/// Children, grandchildren and so on of this process, parents first.
std::vector<Process> descendants();
/// Kills and reaps all descendants, also those that are born meanwhile (this process must be a subreaper).
/// Calls `reaped` with pid and wait status of each. False: some were still there after `patience`.
bool sweep_descendants(
    std::chrono::milliseconds patience, const std::function<void(pid_t, int)>& reaped = [](pid_t, int) {});

/// What a rank starts with.
struct Start {
  std::vector<std::string> command, environment;
  sigset_t signal_mask;
};
struct Started {
  pid_t pid = -1;
  Descriptor handle, output, errors;  // handle: becomes readable when it ends; the others: what it prints
  int exec_error = 0;                 // not 0: the program could not be executed, and nothing runs
};
/// In a process group of its own, killed by the kernel when this process ends. Empty, with errno: no process
/// or descriptor.
std::optional<Started> start(const Start& what);

}  // namespace rondo::cli
