// Asks the machine. Whatever cannot be found out is left as it is in an empty Machine; nothing waits for more
// than about three seconds.
#pragma once
#include "cli/doctor/machine.hpp"

namespace rondo::cli::doctor {

/// Before the process has any threads: it forks.
Machine probe(const Plan& plan);

// Its parts. `root` is where the machine's files begin: "", or a folder that a test has made.
Limits probe_limits();
Cpus probe_cpus(const std::string& root);
std::string probe_clock(const std::string& root);
std::vector<RdmaPort> probe_rdma(const std::string& root);
Gpus probe_gpus(const std::string& root);
Copies probe_copies();
HostName probe_host();
Ports probe_ports(const std::string& root, const Lookup& lookup);
Root probe_root(const std::string& text);
std::map<std::string, uint32_t> probe_speeds(const std::string& root);

}  // namespace rondo::cli::doctor
