// What a machine has said of itself. The probes (probe.hpp) fill it in, the checks (checks.hpp) judge it and ask
// nobody else, so that tests can judge machines that exist on paper only.
#pragma once
#include <asio/ip/address.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/port_range.hpp"
#include "bootstrap/interfaces.hpp"

namespace rondo::cli::doctor {

using Ip = asio::ip::address;

/// What the user is about to do.
struct Plan {
  std::optional<uint32_t> ranks;  // on this machine
  std::string root;               // as in RONDO_ROOT; empty: not told
};

inline constexpr uint64_t unlimited = UINT64_MAX;

/// A limit of setrlimit: what counts, and how far the process may raise it by itself.
struct Limit {
  uint64_t now = unlimited, most = unlimited;
};

struct Limits {
  Limit descriptors, locked_bytes, file_bytes;
  bool may_lock = false;  // CAP_IPC_LOCK: the limit of locked memory does not count
};

struct Cpus {
  uint32_t present = 1, usable = 1;  // usable: the affinity of this process
  std::optional<double> quota;       // of the control group, in CPUs
};

/// /dev/shm.
struct SharedFolder {
  bool there = false;
  uint64_t bytes = 0;
};

struct HostName {
  std::string name;
  std::vector<Ip> addresses;  // that the name means here
  std::string error;          // why there are none
};

/// Those of RONDO_PORTS.
struct Ports {
  std::optional<PortRange> wanted;    // nothing: not set, or wrong
  std::vector<uint16_t> not_free;     // of them
  PortRange ephemeral{32768, 60999};  // what the kernel gives by itself
};

enum class Reply : uint8_t { listening, refused, silent, unreachable };

/// One address of the root, as seen from here.
struct RootPath {
  Ip ip;
  std::optional<Ip> source;  // of packets to it; nothing: no route
  Reply reply = Reply::silent;
  std::string error;  // of the attempt, where it is `unreachable`
};

struct Root {
  std::string name_error;  // why the name means nothing
  std::vector<RootPath> paths;
};

struct Gid {
  unsigned index = 0;
  Ip ip;             // IPv4 where it is one in IPv6 clothes
  std::string type;  // "RoCE v2", "IB/RoCE v1"
};

struct RdmaPort {
  std::string device, state, layer, interface;  // "mlx5_0", "ACTIVE", "Ethernet" or "InfiniBand", "eth0"
  unsigned port = 1;
  std::vector<Gid> gids;  // without the empty ones
};

struct Gpu {
  std::string pci, name;
};

struct Gpus {
  std::vector<Gpu> found;
  std::string nvidia_driver;  // its version; empty: not loaded
  bool nvidia_here = false;   // one of NVIDIA's is found
  bool device_files = false;  // /dev/nvidiactl can be opened
};

/// Of shared memory, in the attempt to copy between two processes.
inline constexpr uint64_t copies_bytes = 4096;
/// What came of it; empty: it worked.
struct Copies {
  std::string shared;   // memory without a name, passed over a Unix socket
  std::string reading;  // process_vm_readv from a process that is no descendant
};

struct Machine {
  std::map<std::string, std::string> variables;  // the environment
  std::string tuning_error;                      // what is wrong with the file of RONDO_TUNING
  Limits limits;
  Cpus cpus;
  SharedFolder dev_shm;
  std::string clock_source;  // empty: not told
  std::vector<bootstrap::NetworkAddress> addresses;
  std::map<std::string, uint32_t> megabits;  // of interfaces that tell their speed
  HostName host;
  Ports ports;
  Root root;
  std::vector<RdmaPort> rdma;
  bool has_rdma_transport = false;  // this build of Rondo
  Gpus gpus;
  Copies copies;
};

/// As the rest of Rondo sees them.
Lookup lookup_in(const std::map<std::string, std::string>& variables);

}  // namespace rondo::cli::doctor
