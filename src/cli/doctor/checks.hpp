// Every check is a pure function from a machine and a plan to findings.
#pragma once
#include "cli/doctor/finding.hpp"
#include "cli/doctor/machine.hpp"

namespace rondo::cli::doctor {

/// The findings of all checks, in the order in which they are shown; each check has one at least.
Findings judge(const Machine& machine, const Plan& plan);

// The checks; the check's name is left to judge().
Findings check_environment(const Machine&, const Plan&);
Findings check_descriptors(const Machine&, const Plan&);
Findings check_locked_memory(const Machine&, const Plan&);
Findings check_dev_shm(const Machine&, const Plan&);
Findings check_file_size(const Machine&, const Plan&);
Findings check_peer_copies(const Machine&, const Plan&);
Findings check_cores(const Machine&, const Plan&);
Findings check_clock(const Machine&, const Plan&);
Findings check_interfaces(const Machine&, const Plan&);
Findings check_host_name(const Machine&, const Plan&);
Findings check_ports(const Machine&, const Plan&);
Findings check_root(const Machine&, const Plan&);
Findings check_tls(const Machine&, const Plan&);
Findings check_rdma(const Machine&, const Plan&);
Findings check_gpus(const Machine&, const Plan&);

/// Descriptors that one process needs at most: `rondo run` for `ranks` ranks, or rank 0 of a `world` over TCP.
uint64_t descriptors_needed(uint64_t ranks, uint64_t world) noexcept;

// Findings without a name yet.
inline Finding ok(std::string what) { return {{}, Severity::ok, std::move(what), {}, {}}; }
inline Finding note(std::string what, std::string why, std::string fix) {
  return {{}, Severity::note, std::move(what), std::move(why), std::move(fix)};
}
inline Finding warning(std::string what, std::string why, std::string fix) {
  return {{}, Severity::warning, std::move(what), std::move(why), std::move(fix)};
}
inline Finding problem(std::string what, std::string why, std::string fix) {
  return {{}, Severity::problem, std::move(what), std::move(why), std::move(fix)};
}

}  // namespace rondo::cli::doctor
