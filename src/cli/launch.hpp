// Starting the ranks of a job, and making sure that they end together.
//
//     front       the process that the user started: passes signals on, waits
//       | pipe    its end, however it comes about, closes the pipe
//     supervisor  a session of its own; all descendants of the ranks fall to it (subreaper)
//       |  |  |
//      rank 0..N-1, each a process group of its own; the kernel kills it when the supervisor ends
//
// So kill -9 of the front ends the ranks through the supervisor, kill -9 of the supervisor through the kernel
// (and the front, to which their descendants then fall).
// The ranks share the supervisor's session: Linux shares out the processor by session first (autogroup), and
// a rank alone in its session cannot yield to the others. 8 ranks on 2 cores then take 3 times as long.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::cli {

struct LaunchSpec {
  uint32_t ranks = 1;
  std::vector<std::string> command;                              // program (looked for in PATH) and arguments
  std::optional<std::chrono::milliseconds> timeout;              // of the whole job
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to what every rank gets
  std::string name = "rondo run";                                // begins the launcher's own messages
  bool prefix_output = true;                                     // "[rank] " before every line
  bool elastic = false;                                          // when a rank fails, the others go on
};

/// Runs the job to its end. Call it from a process with a single thread. Returns the exit code: 0, the first
/// failing rank's (128 + signal; for an elastic job see verdict.hpp), 124 after the timeout, 127 when the program
/// cannot be executed.
int launch(const LaunchSpec& spec);

}  // namespace rondo::cli
