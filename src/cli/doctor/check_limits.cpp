// What the operating system allows a process: descriptors, locked memory, files, and copies between processes.
#include <fmt/format.h>

#include <algorithm>

#include "base/setting.hpp"
#include "bootstrap/descriptors.hpp"
#include "cli/doctor/checks.hpp"
#include "transport/shm/area.hpp"

namespace rondo::cli::doctor {
namespace {

constexpr uint64_t KiB = 1024, MiB = KiB * KiB;
// Below this not even the staging memory of a rank can be registered with certainty.
constexpr uint64_t least_locked = 64 * MiB;
// What rondo::allocate should be able to give.
constexpr uint64_t modest_allocation = 8 * MiB;

// The launcher has three descriptors for each rank that runs (two pipes and a handle of the process), and some of
// its own, measured.
constexpr uint64_t per_launched = 3, launcher_own = 16;

constexpr auto raise_file_size = "ulimit -f unlimited in the shell that starts the job",
               every_rank_fails = "RONDO_TRANSPORT=shm asks for it, so every rank gets an error",
               unset_transport = ", or unset RONDO_TRANSPORT";

bool asks_for_shared_memory(const Machine& machine) {
  return lookup_in(machine.variables)("RONDO_TRANSPORT") == "shm";
}

std::string size_text(uint64_t bytes) {
  if (bytes == unlimited) return "unlimited";
  if (bytes >= MiB && bytes % MiB == 0) return fmt::format("{} MiB", bytes / MiB);
  return bytes % KiB == 0 ? fmt::format("{} KiB", bytes / KiB) : fmt::format("{} bytes", bytes);
}

uint64_t world_of(const Machine& machine, uint64_t ranks) {
  const auto setting = first_of(lookup_in(machine.variables), {"RONDO_WORLD", "WORLD_SIZE"});
  const auto world = setting ? whole_number(*setting, 1, largest_world) : Result<uint32_t>(1);
  return std::max<uint64_t>(ranks, world ? *world : 1);
}

// By how much the limit has to be raised, and by whom.
std::string raise_descriptors(const Limit& limit, uint64_t needed) {
  uint64_t value = 1024;
  while (value < needed) value *= 2;
  if (limit.most >= needed)
    return fmt::format("ulimit -n {} in the shell that starts the job", std::min(value, limit.most));
  return fmt::format(
      "the hard limit is {}; raise it to {}: nofile in /etc/security/limits.conf and a new login, "
      "LimitNOFILE= of the service, or docker run --ulimit nofile={}",
      limit.most, value, value);
}

}  // namespace

uint64_t descriptors_needed(uint64_t ranks, uint64_t world) noexcept {
  return std::max(per_launched * ranks + launcher_own, bootstrap::descriptors_of_root(world));
}

Findings check_descriptors(const Machine& machine, const Plan& plan) {
  const Limit& limit = machine.limits.descriptors;
  const uint64_t ranks = plan.ranks.value_or(machine.cpus.usable), world = world_of(machine, ranks);
  const uint64_t needed = descriptors_needed(ranks, world);
  if (limit.now < needed) {
    const std::string here =
        ranks == world ? fmt::format("{} ranks", ranks) : fmt::format("{} ranks of {}", ranks, world);
    auto finding = problem(fmt::format("ulimit -n is {}; {} need about {}", limit.now, here, needed),
                           "rondo run holds three descriptors for every rank, and rank 0 two; without them "
                           "ranks cannot start or join",
                           raise_descriptors(limit, needed));
    if (!plan.ranks) finding.severity = Severity::warning;  // nobody has said that there will be so many
    return {finding};
  }
  if (limit.now == unlimited) return {ok("unlimited")};
  const uint64_t most =
      std::min((limit.now - launcher_own) / per_launched,
               (limit.now - bootstrap::root_own_descriptors) / bootstrap::root_descriptors_per_rank);
  return {ok(fmt::format("ulimit -n is {}, enough for {} ranks here", limit.now, most))};
}

Findings check_locked_memory(const Machine& machine, const Plan&) {
  const Limits& limits = machine.limits;
  const std::string now = size_text(limits.locked_bytes.now);
  if (machine.rdma.empty()) return {ok(now + ", and nothing here needs any: there is no RDMA device")};
  if (limits.may_lock) return {ok(now + ", which does not count for this user (CAP_IPC_LOCK)")};
  if (limits.locked_bytes.now >= least_locked) return {ok(now)};
  auto finding =
      warning(fmt::format("ulimit -l is {}, and there are RDMA devices", now),
              "memory that an RDMA device reads is locked; registering it fails with ENOMEM, and TCP "
              "is used in its place",
              "ulimit -l unlimited; memlock in /etc/security/limits.conf, LimitMEMLOCK=infinity of "
              "the service, or docker run --ulimit memlock=-1");
  if (!machine.has_rdma_transport) {
    finding.severity = Severity::note;
    finding.why = "this build of Rondo does not use them; other programs need locked memory for that";
  }
  return {finding};
}

Findings check_dev_shm(const Machine& machine, const Plan&) {
  const auto& folder = machine.dev_shm;
  return {ok(fmt::format("{}; Rondo does not use it, its shared memory has no name",
                         folder.there ? size_text(folder.bytes) : std::string("missing")))};
}

Findings check_file_size(const Machine& machine, const Plan& plan) {
  const uint64_t now = machine.limits.file_bytes.now;
  if (now >= modest_allocation) return {ok(size_text(now))};
  const uint64_t ranks = std::max<uint64_t>(2, plan.ranks.value_or(machine.cpus.usable));
  const uint64_t area = shm::Area::bytes_for(uint32_t(world_of(machine, ranks)));
  auto finding = warning(fmt::format("ulimit -f is {}", size_text(now)),
                         "shared memory counts as a file: rondo::allocate fails beyond it", raise_file_size);
  if (now >= area) return {finding};
  finding.what += fmt::format("; a rank's shared memory has {}", size_text(area));
  finding.why =
      "shared memory counts as a file: the ranks of this machine use TCP, and rondo::allocate fails beyond "
      "it";
  if (asks_for_shared_memory(machine)) {
    finding.severity = Severity::problem;
    finding.why = every_rank_fails;
    finding.fix += unset_transport;
  }
  return {finding};
}

Findings check_peer_copies(const Machine& machine, const Plan&) {
  const Copies& copies = machine.copies;
  Findings found;
  if (!copies.shared.empty()) {
    auto finding =
        warning("memory cannot be shared between processes: " + copies.shared,
                "the ranks of this machine use TCP over loopback, which is slower; the results are the same",
                "allow memfd_create, sealing and abstract Unix sockets (seccomp profile, AppArmor)");
    if (machine.limits.file_bytes.now < copies_bytes) finding.fix = raise_file_size;
    if (asks_for_shared_memory(machine)) {
      finding.severity = Severity::problem;
      finding.why = every_rank_fails;
      finding.fix += unset_transport;
    }
    found.push_back(finding);
  }
  if (!copies.reading.empty())
    found.push_back(
        note("a process cannot read another's private memory: " + copies.reading,
             "large messages are then copied twice, through shared memory; the results are the same",
             "docker run --cap-add SYS_PTRACE, or sysctl kernel.yama.ptrace_scope=0; or send from "
             "rondo::allocate, which needs neither"));
  if (found.empty()) found.push_back(ok("shared memory and reading a peer's memory both work"));
  return found;
}

}  // namespace rondo::cli::doctor
