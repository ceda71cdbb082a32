// Links between threads of one process that misbehave on purpose: what a slow, choppy or broken network can
// do to the engine, repeatable from a seed. For tests.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "transport/link.hpp"

namespace rondo::fake {

/// What goes wrong. Probabilities are per call; byte positions are per link.
struct Faults {
  uint64_t seed = 1;
  size_t capacity = size_t(1) << 20;  // bytes under way per link; 1 still works
  size_t largest_write = SIZE_MAX;    // short writes: at most so many bytes are accepted at once
  double write_refused = 0;           // a send or acquire finds no credit although there is some
  double read_hidden = 0;             // reordered readiness: bytes are there but not shown at this poll
  uint64_t close_after = UINT64_MAX;  // the link closes when so many bytes have been accepted
  uint64_t stall_after = UINT64_MAX;  // nothing more is delivered after so many bytes
};

class Pipe;  // one direction between two ranks

/// All links of `world` ranks. `ring` is called, from any thread, when something has changed for that rank.
class Network {
 public:
  Network(uint32_t world, LinkCaps caps, Faults faults, std::function<void(Rank)> ring);
  ~Network();
  std::unique_ptr<Fabric> fabric(Rank rank);

 private:
  class RankFabric;
  Pipe& pipe(Rank from, Rank to);

  LinkCaps caps_;
  Faults faults_;
  std::function<void(Rank)> ring_;
  std::vector<std::unique_ptr<Pipe>> pipes_;
  uint32_t world_;
};

}  // namespace rondo::fake
