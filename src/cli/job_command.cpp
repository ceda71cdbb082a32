#include "cli/job_command.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "cli/launch.hpp"

namespace rondo::cli {

int report(const char* name, const Error& error) {
  fmt::print(stderr, "{}: {}: {}\n", name, name_of(error.code), error.message);
  if (error.code == ErrorCode::invalid_argument) return usage;
  return error.code == ErrorCode::timeout ? deadline : run_time_failure;
}

int start_ranks(const char* name, uint32_t ranks, const std::vector<std::string>& arguments) {
  LaunchSpec spec;
  spec.ranks = ranks;
  spec.command = {"/proc/self/exe"};
  spec.command.insert(spec.command.end(), arguments.begin(), arguments.end());
  spec.name = name;
  spec.prefix_output = false;
  return launch(spec);
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace rondo::cli
