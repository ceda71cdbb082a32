#include "base/launcher.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>

#include "base/host_list.hpp"
#include "base/root_address.hpp"
#include "base/setting.hpp"

namespace rondo {
namespace {

using Kind = LauncherKind;

// Below the ports that kernels give out by themselves, above those of most services.
constexpr uint32_t first_port = 20000, ports = 12000;
// Steps from here on are not srun's: a batch script, an interactive shell, what runs beside a job.
constexpr uint32_t first_special_step = 0xfffffff0;
constexpr size_t longest_id = 64;

// The first in this order that sets both counts; Slurm comes after them.
constexpr std::array<Launcher, 3> simple{{{Kind::torchrun, "RANK", "WORLD_SIZE"},
                                          {Kind::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                          {Kind::mpich, "PMI_RANK", "PMI_SIZE"}}};

constexpr std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::torchrun:
      return "torchrun";
    case Kind::open_mpi:
      return "openmpi";
    case Kind::mpich:
      return "mpich";
    case Kind::slurm:
      return "slurm";
  }
  return {};
}

// In a batch script SLURM_PROCID is 0, and yet nobody started ranks.
bool in_slurm_step(const Lookup& lookup) {
  const auto step = first_of(lookup, {"SLURM_STEP_ID", "SLURM_STEPID"});
  return step && whole_number(*step, 0, first_special_step - 1).ok();
}

std::optional<Launcher> slurm_step(const Lookup& lookup) {
  if (!in_slurm_step(lookup) || !lookup("SLURM_PROCID")) return std::nullopt;
  for (const char* world : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
    if (lookup(world)) return Launcher{Kind::slurm, "SLURM_PROCID", world};
  return std::nullopt;
}

bool same_value(const Lookup& lookup, const char* one, const char* other) {
  return lookup(one) == lookup(other);
}

// Whether the variables say that all ranks run on this machine.
bool on_one_machine(const Lookup& lookup, Kind kind) {
  switch (kind) {
    case Kind::torchrun:
      return false;  // it says where rank 0 is
    case Kind::open_mpi:
      return same_value(lookup, "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE");
    case Kind::mpich:
      if (same_value(lookup, "MPI_LOCALNRANKS", "PMI_SIZE")) return true;
      break;  // srun sets PMI variables too
    case Kind::slurm:
      break;
  }
  if (!slurm_step(lookup)) return false;
  const auto machines = first_of(lookup, {"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  return machines && machines->value == "1";
}

// The job's own name on this machine.
std::optional<std::string> job_id(const Lookup& lookup, const RootQuestion& question) {
  std::optional<Setting> id;
  switch (question.launcher->kind) {
    case Kind::torchrun:
      return std::nullopt;
    case Kind::open_mpi:
      id = first_of(lookup, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
      break;
    case Kind::mpich:
      id = first_of(lookup, {"PMI_JOBID", "PMI_PORT"});
      if (const auto fd = first_of(lookup, {"PMI_FD"}); fd && !id) {
        const auto number = whole_number(*fd, 0, 1u << 20);
        const auto process = number ? question.peer(int(*number)) : std::nullopt;
        if (process) return fmt::format("pid-{}", *process);
      }
      break;
    case Kind::slurm: {
      const auto job = first_of(lookup, {"SLURM_JOB_ID", "SLURM_JOBID"});
      const auto step = first_of(lookup, {"SLURM_STEP_ID", "SLURM_STEPID"});
      if (job && step) return job->value + "." + step->value;
      break;
    }
  }
  if (!id) return std::nullopt;
  // What tells jobs apart is at the end.
  if (id->value.size() > longest_id) id->value.erase(0, id->value.size() - longest_id);
  return id->value;
}

// Where job_id looks, for whoever has to set it.
constexpr std::string_view job_id_variables(Kind kind) {
  switch (kind) {
    case Kind::torchrun:
      break;
    case Kind::open_mpi:
      return "PMIX_NAMESPACE (or OMPI_MCA_ess_base_jobid)";
    case Kind::mpich:
      return "PMI_JOBID (or PMI_PORT, or PMI_FD as a socket that the launcher has opened)";
    case Kind::slurm:
      return "SLURM_JOB_ID";
  }
  return {};
}

// torchrun's own agent listens on MASTER_PORT, so rank 0 takes the next one.
Result<std::string> root_from_master(const Setting& host, const Setting& port) {
  const auto number = whole_number(port, 1, 65534);
  if (!number) return number.error();
  const std::string root = join_host_port(host.value, uint16_t(*number + 1));
  if (auto parsed = parse_root(root); !parsed) return invalid(host, parsed.error().message);
  return root;
}

// Slurm puts rank 0 on the first host of a step. Where srun itself ran may be elsewhere, a login node say,
// and is a guess for steps that do not list their hosts.
Result<std::string> root_from_slurm(const Lookup& lookup) {
  const auto job = first_of(lookup, {"SLURM_JOB_ID", "SLURM_JOBID"});
  const auto step = first_of(lookup, {"SLURM_STEP_ID", "SLURM_STEPID"});
  const auto hosts = first_of(lookup, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const auto origin = first_of(lookup, {"SLURM_LAUNCH_NODE_IPADDR"});
  if (!job || !step || (!hosts && !origin))
    return missing("RONDO_ROOT",
                   "Slurm's variables (SLURM_JOB_ID, SLURM_STEP_ID, SLURM_STEP_NODELIST) do "
                   "not say where rank 0 is; set it to host:port of rank 0's machine");
  const auto job_number = whole_number(*job, 0, UINT32_MAX), step_number = whole_number(*step, 0, UINT32_MAX);
  if (!job_number) return job_number.error();
  if (!step_number) return step_number.error();
  const auto host = hosts ? first_host(hosts->value) : origin->value;
  if (!host) return invalid(*hosts, "is not a list of hosts such as node[01-04],login");
  const uint32_t port = uint32_t(first_port + (61 * uint64_t(*job_number) + *step_number) % ports);
  const std::string root = join_host_port(*host, uint16_t(port));
  if (auto parsed = parse_root(root); !parsed)
    return invalid(hosts ? *hosts : *origin, parsed.error().message);
  return root;
}

bool sets_both(const Lookup& lookup, const Launcher& launcher) {
  return first_of(lookup, {launcher.rank}) && first_of(lookup, {launcher.world});
}

bool same_rank(const Lookup& lookup, const Launcher& one, const Launcher& other) {
  return same_value(lookup, one.rank, other.rank) && same_value(lookup, one.world, other.world);
}

// Slurm's variables describe this very rank, and not, say, the helper through which mpirun started it.
bool slurm_agrees(const Lookup& lookup, const Launcher& launcher) {
  const auto slurm = slurm_step(lookup);
  return slurm && same_rank(lookup, launcher, *slurm);
}

}  // namespace

std::optional<Launcher> find_launcher(const Lookup& lookup) {
  for (const Launcher& launcher : simple)
    if (sets_both(lookup, launcher)) return launcher;
  return slurm_step(lookup);
}

// Slurm starts other launchers, and says of their helpers what it would say of ranks: only RANK and WORLD_SIZE,
// which people set by hand, are compared with it. A launcher that starts one of another kind on each machine
// makes the two differ rightly; torchrun and rondo run mark their ranks.
std::optional<std::string> contradiction(const Lookup& lookup) {
  const auto chosen = find_launcher(lookup);
  if (!chosen || first_of(lookup, {"RONDO_RANK", "RONDO_WORLD"})) return std::nullopt;
  const bool by_hand = chosen->kind == Kind::torchrun;
  if (by_hand && first_of(lookup, {"TORCHELASTIC_RUN_ID", "RONDO_JOB"})) return std::nullopt;
  std::optional<Launcher> other;
  for (const Launcher& launcher : simple)
    if (launcher.kind > chosen->kind && sets_both(lookup, launcher) && !slurm_agrees(lookup, launcher))
      if (!other && !same_rank(lookup, *chosen, launcher)) other = launcher;
  if (const auto slurm = slurm_step(lookup);
      by_hand && slurm && !other && !same_rank(lookup, *chosen, *slurm))
    other = slurm;
  if (!other) return std::nullopt;
  const auto text = [&](const Launcher& launcher) {
    return fmt::format("{}={} and {}={}", launcher.rank, *lookup(launcher.rank), launcher.world,
                       *lookup(launcher.world));
  };
  return fmt::format("{} count, but {} say otherwise: if the former are left over, unset them", text(*chosen),
                     text(*other));
}

std::optional<uint32_t> process_behind(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 || credentials.pid <= 0)
    return std::nullopt;
  return uint32_t(credentials.pid);
}

Result<std::string> root_from_launcher(const Lookup& lookup, const RootQuestion& question) {
  const auto host = first_of(lookup, {"MASTER_ADDR"}), port = first_of(lookup, {"MASTER_PORT"});
  const auto& launcher = question.launcher;
  const bool foreign = launcher && launcher->kind != Kind::torchrun;
  const bool one_machine = foreign && on_one_machine(lookup, launcher->kind);
  if (one_machine)
    if (const auto id = job_id(lookup, question))
      return fmt::format("unix:@rondo-{}-{}-{}", name_of(launcher->kind), question.user, *id);
  if (host && port) return root_from_master(*host, *port);
  if (!foreign)
    return missing("RONDO_ROOT (or MASTER_ADDR and MASTER_PORT)",
                   "it says where rank 0 is found; start the program with rondo run or torchrun, or set it");
  const std::string_view name = name_of(launcher->kind);
  if (one_machine && !(question.has_secret && slurm_agrees(lookup, *launcher)))
    return missing(job_id_variables(launcher->kind),
                   fmt::format("{} said that all ranks are on this machine, but not which job they are; set "
                               "RONDO_ROOT to unix:@NAME on every rank, with a NAME that no other job has",
                               name));
  if (!slurm_agrees(lookup, *launcher))
    return missing(
        question.has_secret ? "RONDO_ROOT" : "RONDO_ROOT and RONDO_SECRET",
        fmt::format("{} did not say that all ranks are on this machine, nor where rank 0 is; set "
                    "RONDO_ROOT to host:port of rank 0's machine, and RONDO_SECRET to the same long "
                    "random text, on every rank",
                    name));
  if (!question.has_secret)
    return missing("RONDO_SECRET (or RONDO_SECRET_FILE)",
                   fmt::format("{} started ranks on several machines; set it to the same long random text on "
                               "every rank",
                               name));
  return root_from_slurm(lookup);
}

}  // namespace rondo
