// Runs calls, one after another, on the links of one communicator.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "engine/execution.hpp"
#include "engine/failure.hpp"
#include "engine/progress.hpp"
#include "engine/recorder.hpp"
#include "engine/selection.hpp"
#include "engine/strays.hpp"
#include "engine/tuning.hpp"
#include "engine/waiter.hpp"

namespace rondo::engine {

/// Driver thread only, except where said. Fabric, waiter and failure outlive it.
class Engine {
 public:
  struct Place {
    Rank rank;
    uint32_t world;
    uint64_t epoch;                                     // agreed by all ranks of this communicator
    std::optional<schedule::Algorithm> algorithm = {};  // agreed: what to prefer to the selected ones
    std::vector<uint32_t> nodes = {};                   // agreed: of every rank; empty: all are on one
    Tuning tuning = {};                                 // agreed
    uint32_t cores = 1;                                 // agreed: of a node
  };
  Engine(const Place& place, Fabric& fabric, Waiter& waiter, const Failure& failure);

  /// Starts a call; the one before has ended. Different threads may make its passes, one after another.
  void begin(const Call& call, TimePoint deadline);
  /// One pass over the call's links. Never blocks.
  Progress advance();
  /// Of a call that has ended; nothing: this rank's part is done. Timeout, peer_lost, mismatch, or the
  /// communicator's failure. After an error nothing touches the call's memory any more, and the engine must
  /// not run another call.
  const std::optional<Error>& error() const noexcept { return error_; }
  /// The number, among those of all ranks, of the call in which ranks disagree, where the error is a mismatch in
  /// another one than the last.
  std::optional<uint64_t> disputed() const noexcept { return disputed_; }
  /// begin, and advance until it has ended; the error.
  Result<void> run(const Call& call, TimePoint deadline);
  /// The driver: a time-out that tells what the call under way waits for.
  Error held_up() const;
  /// Whether anything of the call under way has come from the peer.
  bool has_called(Rank peer) const { return started_ && execution_.has_called(peer); }
  /// The driver: an error of the communicator, told as one of the last call.
  Error explain(Error error) const;
  /// Any thread, also during a call. The numbers may be of slightly different moments.
  Counters counters() const noexcept;
  /// Any thread may read it.
  const Recorder& recorder() const noexcept { return recorder_; }
  /// Any thread: what the last call that was begun runs.
  schedule::Algorithm algorithm() const noexcept { return algorithm_.load(std::memory_order_relaxed); }

 private:
  const Program& program_for(const Call& call);
  void make_headers();
  uint64_t window_for(const Call& call) const;
  schedule::Algorithm choose(const Call& call);
  bool publishes() const noexcept { return fabric_.publication() != nullptr; }
  Result<bool> open_links();
  std::optional<Progress> start();
  Progress rest();
  std::optional<Error> stray();
  Error disagreement(const Stray& stray);
  Progress end(std::optional<Error> error);
  void publish() noexcept;
  Error late(const std::string& what, std::optional<Rank> peer) const;

  Place place_;
  Selection selection_;
  Fabric& fabric_;
  Waiter& waiter_;
  const Failure& failure_;
  Counters counters_;  // the driver's; the atomics are what others may read of it
  std::atomic<uint64_t> operations_{0}, payload_sent_{0}, headers_sent_{0};
  std::atomic<schedule::Algorithm> algorithm_{schedule::Algorithm::ring};
  Execution execution_;
  Recorder recorder_;
  uint64_t sequence_ = 0;  // of operations here; their headers count those of all ranks, and those of two
  uint64_t collectives_ = 0;
  std::vector<uint64_t> sent_, received_;  // by peer: send_recvs
  Call asked_{}, call_{};                  // as given, and with its algorithm
  TimePoint deadline_;
  // Of the call, and good for the next one if only its buffers differ.
  const Program* program_ = nullptr;
  uint64_t window_ = 0;          // 0: not known yet, nor the headers
  std::vector<Header> headers_;  // one, or one for each link of the program
  Rank unopened_ = 0;            // the peer whose link is awaited
  bool started_ = false, armed_ = false;
  std::optional<Error> error_;
  std::optional<uint64_t> disputed_;
  Links links_;
  Strays strays_;
  std::map<std::tuple<schedule::Operation, schedule::Algorithm, Rank, Rank, Rank>, Program> programs_;
};

}  // namespace rondo::engine
