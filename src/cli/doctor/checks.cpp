#include "cli/doctor/checks.hpp"

#include <array>

namespace rondo::cli::doctor {
namespace {

struct Check {
  const char* name;
  Findings (*judge)(const Machine&, const Plan&);
};

constexpr std::array<Check, 15> checks{{
    {"environment", check_environment},
    {"descriptors", check_descriptors},
    {"locked memory", check_locked_memory},
    {"/dev/shm", check_dev_shm},
    {"file size", check_file_size},
    {"peer copies", check_peer_copies},
    {"cores", check_cores},
    {"clock", check_clock},
    {"interfaces", check_interfaces},
    {"host name", check_host_name},
    {"ports", check_ports},
    {"root", check_root},
    {"TLS", check_tls},
    {"RDMA", check_rdma},
    {"GPUs", check_gpus},
}};

}  // namespace

Findings judge(const Machine& machine, const Plan& plan) {
  Findings all;
  for (const Check& check : checks)
    for (Finding& finding : check.judge(machine, plan)) {
      finding.check = check.name;
      all.push_back(std::move(finding));
    }
  return all;
}

Lookup lookup_in(const std::map<std::string, std::string>& variables) {
  return [&variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

}  // namespace rondo::cli::doctor
