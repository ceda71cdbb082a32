// The variables by which a rank finds its job.
#pragma once
#include <string>
#include <vector>

#include "cli/launch.hpp"

namespace rondo::cli {

/// One job's names and secret, made up at random.
struct JobNames {
  std::string job, root, secret;
  uint16_t master_port = 0;
};
JobNames make_job_names();
/// This process's environment, changed for `rank`: "NAME=value" each.
std::vector<std::string> rank_environment(const LaunchSpec& spec, const JobNames& names, uint32_t rank);

}  // namespace rondo::cli
