#include "cli/doctor/probe.hpp"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>

#include "cli/doctor/files.hpp"
#include "engine/tuning.hpp"

namespace rondo::cli::doctor {
namespace {

Limit limit_of(decltype(RLIMIT_NOFILE) which) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0) return {};
  const auto value = [](rlim_t of) { return of == RLIM_INFINITY ? unlimited : uint64_t(of); };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

bool may_lock() {
  constexpr unsigned cap_ipc_lock = 14;
  const auto capabilities = field(content("/proc/self/status"), "CapEff:");
  return capabilities && (std::strtoull(capabilities->c_str(), nullptr, 16) >> cap_ipc_lock & 1) != 0;
}

SharedFolder probe_dev_shm() {
  struct statvfs status {};
  if (::statvfs("/dev/shm", &status) != 0) return {};
  return {true, uint64_t(status.f_blocks) * status.f_frsize};
}

}  // namespace

Limits probe_limits() {
  return {limit_of(RLIMIT_NOFILE), limit_of(RLIMIT_MEMLOCK), limit_of(RLIMIT_FSIZE), may_lock()};
}

Machine probe(const Plan& plan) {
  Machine machine;
  machine.copies = probe_copies();  // it forks: before the first thread
  machine.variables = all_variables();
  const Lookup lookup = lookup_in(machine.variables);
  if (const auto file = lookup("RONDO_TUNING"))
    if (const auto tuning = engine::read_tuning(*file); !tuning)
      machine.tuning_error = tuning.error().message;
  machine.limits = probe_limits();
  machine.cpus = probe_cpus("");
  machine.dev_shm = probe_dev_shm();
  machine.clock_source = probe_clock("");
  machine.addresses = bootstrap::machine_addresses();
  machine.megabits = probe_speeds("");
  machine.host = probe_host();
  machine.ports = probe_ports("", lookup);
  if (!plan.root.empty()) machine.root = probe_root(plan.root);
  machine.rdma = probe_rdma("");
  machine.has_rdma_transport = std::ranges::find(transport_names, "verbs") != transport_names.end();
  machine.gpus = probe_gpus("");
  return machine;
}

}  // namespace rondo::cli::doctor
