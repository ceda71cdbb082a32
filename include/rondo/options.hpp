// How a communicator is set up. Whatever is left empty comes from the environment (see docs/launching.md).
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "rondo/types.hpp"

namespace rondo {

struct Options {
  std::optional<Rank> rank;       ///< RONDO_RANK, else the launcher's
  std::optional<uint32_t> world;  ///< RONDO_WORLD, else the launcher's
  std::string root;  ///< RONDO_ROOT: where rank 0 is found: "host:port", "unix:@name" or "file:/path";
                     ///< else as the launcher says, see docs/launching.md
  std::string
      secret;  ///< RONDO_SECRET, or the content of RONDO_SECRET_FILE: proves that a peer is of this job
  /// RONDO_TLS, "0" or "1", the same on every rank: TLS 1.3 on all TCP connections. Needs a secret.
  std::optional<bool> tls;
  std::string interfaces;  ///< RONDO_INTERFACE: which may be listened on
  std::string ports;       ///< RONDO_PORTS: where to listen, "45000-45010"
  std::string
      advertise;       ///< RONDO_ADVERTISE: "IP" or "IP:PORT", where the others find this rank, if not there
  std::string listen;  ///< RONDO_LISTEN: "IP:PORT", where rank 0 listens, if not at the root
  std::string transport;  ///< RONDO_TRANSPORT of rank 0: "auto", "tcp" or "shm"
  std::string algorithm;  ///< RONDO_ALGORITHM of rank 0: "auto", "ring", "direct", ... (docs/algorithms.md)
  /// RONDO_REPRODUCIBLE of rank 0, "0" or "1": sum in the order of the canonical tree unless a call says otherwise.
  std::optional<bool> reproducible;
  std::string tuning;  ///< RONDO_TUNING of rank 0: a file that `rondo tune` wrote
  /// RONDO_NODE: ranks that give different numbers are taken for ranks of different machines; 0 to 65535, for tests.
  std::optional<uint32_t> node;
  std::string fault;  ///< RONDO_FAULT: what shall go wrong, for tests of failures; see docs/faults.md
  std::optional<std::chrono::milliseconds> init_timeout;  ///< RONDO_INIT_TIMEOUT in seconds; 60
  std::optional<std::chrono::milliseconds> timeout;       ///< RONDO_TIMEOUT in seconds: of one operation; 300
  /// RONDO_STATE_SIGNAL, "0" or "1": SIGUSR1 makes the process print what its communicators do, as JSON, on stderr.
  std::optional<bool> state_signal;
  /// RONDO_HEARTBEAT of rank 0 in seconds, 10: a rank that nothing is heard of for so long is lost. Zero: never.
  std::optional<std::chrono::milliseconds> heartbeat;
};

}  // namespace rondo
