// Runs calls, one after another, on the links of one communicator.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "engine/execution.hpp"
#include "engine/failure.hpp"
#include "engine/recorder.hpp"
#include "engine/waiter.hpp"

namespace rondo::engine {

/// Driver thread only, except where said. Fabric, waiter and failure outlive it.
class Engine {
 public:
  struct Place {
    Rank rank;
    uint32_t world;
    uint64_t epoch;  // agreed by all ranks of this communicator
  };
  Engine(const Place& place, Fabric& fabric, Waiter& waiter, const Failure& failure);

  /// Blocks until this rank's part is done. After an error nothing touches the call's memory any more, and
  /// the engine must not run another call. Errors: timeout, peer_lost, mismatch, or the communicator's
  /// failure.
  Result<void> run(const Call& call, TimePoint deadline);
  /// Any thread that has synchronised with the driver.
  const Counters& counters() const noexcept { return counters_; }

 private:
  const Program& program_for(const Call& call);
  uint64_t window_for(const Program& program, const Call& call);
  Result<void> open_links(const Program& program, TimePoint deadline);
  Result<void> drive(TimePoint deadline);
  bool rest(TimePoint deadline);
  Error late(const std::string& what, std::optional<Rank> peer) const;
  Error explain(Error error, const Call& call) const;

  Place place_;
  Fabric& fabric_;
  Waiter& waiter_;
  const Failure& failure_;
  Counters counters_;
  Execution execution_;
  Recorder recorder_;
  uint64_t sequence_ = 0;
  Links links_;
  std::map<std::tuple<schedule::Operation, schedule::Algorithm, Rank>, Program> programs_;
};

}  // namespace rondo::engine
