// What other programs' launchers tell the ranks that they start.
//
//                rank, world                  where rank 0 is
//   torchrun     RANK, WORLD_SIZE             MASTER_ADDR : MASTER_PORT + 1
//   Open MPI     OMPI_COMM_WORLD_RANK, _SIZE  } one machine: a Unix socket named from user and job
//   MPICH        PMI_RANK, PMI_SIZE           } several: MASTER_ADDR : MASTER_PORT + 1, else as Slurm where
//   Slurm        SLURM_PROCID, SLURM_NTASKS   } it tells the same rank and world: first host : port from the
//   job
//
// The first in this order whose rank and world are both set is the launcher: what mpirun starts through
// Slurm, for one, also sees variables of Slurm, but of mpirun's own helpers.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "base/environment.hpp"

namespace rondo {

enum class LauncherKind : uint8_t { torchrun, open_mpi, mpich, slurm };

struct Launcher {
  LauncherKind kind = LauncherKind::torchrun;
  const char *rank = "RANK", *world = "WORLD_SIZE";  // the variables
};

/// Nothing: no launcher that sets both.
std::optional<Launcher> find_launcher(const Lookup& lookup);

/// What to warn of: another launcher's variables are set too, and tell another rank or world than those that
/// count.
std::optional<std::string> contradiction(const Lookup& lookup);

/// The process at the other end of an inherited Unix socket. Hydra names a job in no variable, but the
/// process that holds the other end of PMI_FD is the same for all ranks of a machine, and of no other job.
using SocketPeer = std::function<std::optional<uint32_t>(int socket)>;
std::optional<uint32_t> process_behind(int socket);

/// Where rank 0 is, as the launcher's variables tell.
struct RootQuestion {
  std::optional<Launcher> launcher;
  bool has_secret = false;
  uint32_t user = 0;
  SocketPeer peer = process_behind;
};
Result<std::string> root_from_launcher(const Lookup& lookup, const RootQuestion& question);

}  // namespace rondo
