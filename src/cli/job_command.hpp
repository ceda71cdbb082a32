// What commands share that run as a job of their own: bench, tune.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "rondo/result.hpp"

namespace rondo::cli {

enum Exit : int { right = 0, wrong_data = 1, usage = 2, run_time_failure = 3, deadline = 4 };

/// Says on stderr what failed; the exit code. `name` is the command's, "rondo bench".
int report(const char* name, const Error& error);
/// Starts this very command once per rank; the ranks then find themselves in the job.
int start_ranks(const char* name, uint32_t ranks, const std::vector<std::string>& arguments);
double now_us();

}  // namespace rondo::cli
