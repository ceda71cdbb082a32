// What a communicator tells of itself to whoever asks its process (bootstrap/state_door.hpp).
#pragma once
#include "bootstrap/job.hpp"
#include "engine/engine.hpp"

namespace rondo {

/// How the data travel.
struct DataPath {
  std::string_view transport;
  bool tls;  // on TCP connections
};

/// Any thread; all are alive. {"rank", "world", "epoch", "transport", "transport_reason", "tls", "address", "nodes",
/// "algorithm", "reproducible", "failure", "operations": the last ones, newest first}
std::string state_json(const bootstrap::Job& job, const DataPath& path, const engine::Engine& engine,
                       const engine::Failure& failure);

}  // namespace rondo
