// Cores, the quota of the control group, clocks.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/cores.hpp"
#include "cli/doctor/files.hpp"
#include "cli/doctor/probe.hpp"

namespace rondo::cli::doctor {
namespace {

// The folders of a control group, from the outermost on: each may have a quota, the least counts. In a container
// the innermost may be all that is visible, at the root of the mount.
std::vector<std::string> folders_of(const std::string& mount, const std::string& group) {
  std::vector<std::string> folders{mount};
  for (size_t slash = 1; slash != group.npos && slash < group.size();) {
    slash = group.find('/', slash);
    folders.push_back(mount + group.substr(0, slash));
    if (slash != group.npos) slash++;
  }
  return folders;
}

// Version 2: "QUOTA PERIOD" or "max PERIOD"; version 1: a file for each, -1 for none.
std::optional<double> quota_in(const std::string& folder) {
  double quota = -1, period = 0;
  if (const std::string both = content(folder + "/cpu.max"); !both.empty()) {
    if (std::sscanf(both.c_str(), "%lf %lf", &quota, &period) != 2) return std::nullopt;
  } else {
    quota = std::atof(content(folder + "/cpu.cfs_quota_us").c_str());
    period = std::atof(content(folder + "/cpu.cfs_period_us").c_str());
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// A line of /proc/self/cgroup is "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1.
std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  const std::string groups = content(root + "/proc/self/cgroup") + "\n", mounts = root + "/sys/fs/cgroup";
  for (size_t begin = 0, end; (end = groups.find('\n', begin)) != groups.npos; begin = end + 1) {
    const std::string line = groups.substr(begin, end - begin);
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    std::vector<std::string> places;
    if (controllers == ",,") places = {mounts, mounts + "/unified"};
    if (controllers.find(",cpu,") != controllers.npos) places = {mounts + "/cpu", mounts + "/cpu,cpuacct"};
    for (const std::string& place : places)
      for (const std::string& folder : folders_of(place, line.substr(second + 1)))
        if (const auto quota = quota_in(folder)) least = std::min(least.value_or(*quota), *quota);
  }
  return least;
}

}  // namespace

Cpus probe_cpus(const std::string& root) {
  const long present = ::sysconf(_SC_NPROCESSORS_ONLN);
  const auto usable = uint32_t(usable_cores());
  return {std::max(usable, uint32_t(std::max(present, 1l))), usable, cpu_quota(root)};
}

std::string probe_clock(const std::string& root) {
  return content(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
}

}  // namespace rondo::cli::doctor
