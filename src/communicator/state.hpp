// Everything one communicator owns.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/environment.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/regroup.hpp"
#include "bootstrap/service.hpp"
#include "communicator/attendant.hpp"
#include "communicator/operations.hpp"
#include "communicator/postman.hpp"
#include "communicator/runner.hpp"
#include "communicator/shared_memory.hpp"
#include "communicator/split.hpp"
#include "engine/engine.hpp"
#include "rondo/communicator.hpp"
#include "transport/faulty/fabric.hpp"
#include "transport/tcp/fabric.hpp"

namespace rondo {

// The job's service thread calls the Handler; whoever drives the operations runs the engine; failure_ and waiter_
// may be touched by any thread.
class Communicator::State final : bootstrap::Handler {
 public:
  /// `options` is complete.
  static Result<std::unique_ptr<State>> join(const Options& options, const bootstrap::Policy& policy,
                                             const bootstrap::Meeting& meeting = {});
  /// The settings of this rank, in code and elsewhere, are wrong: tells the others, as far as they can be reached, and
  /// returns the error.
  static Error declined(const Error& why, const Options& in_code, const Lookup& lookup);
  /// What is still under way ends with `aborted`, here and now; the peers see the links close.
  ~State() override;

  bool is_of_this_process() const noexcept;
  Rank rank() const noexcept { return rank_; }
  uint32_t world() const noexcept { return job_->world(); }
  std::string_view transport() const noexcept { return world() == 1 ? "local" : shm_ ? "shm" : "tcp"; }
  Counters counters() const noexcept { return engine_->counters(); }
  milliseconds init_timeout() const noexcept { return *options_.init_timeout; }
  bool reproducible() const noexcept { return job_->policy().reproducible; }
  std::string_view algorithm() const noexcept { return name_of(engine_->algorithm()); }
  const std::vector<Rank>& parents() const noexcept { return parents_; }
  /// Where newcomers look for this communicator; "": they cannot know.
  const std::string& home() const noexcept { return home_; }

  Result<void> run(const engine::Call& call, const CallOptions& options, std::unique_ptr<Group> group);
  Result<Work> submit(const engine::Call& call, const CallOptions& options, std::unique_ptr<Group> group);
  void abort() noexcept;

  // Communicators that come of this one (succession.cpp).

  /// A place to meet for a part of this communicator that this rank leads.
  Result<bootstrap::Meeting> meet() const { return job_->meet(); }
  /// Not collective over this communicator but over the part.
  Result<std::unique_ptr<State>> join_part(const Part& part, bootstrap::Meeting meeting) const;
  Result<std::unique_ptr<State>> shrink(const CallOptions& call);
  /// The same ranks and those that come to `root`, if all of these succeed.
  Result<std::unique_ptr<State>> join_grown(uint32_t newcomers, const std::string& root,
                                            milliseconds patience) const;
  /// They have all succeeded: `next` takes this one's place.
  std::unique_ptr<State> confirm(std::unique_ptr<State> next);
  /// Maybe they have, and some know it: shrink will ask.
  void doubt(std::unique_ptr<State> next);

 private:
  State(const Options& options, std::unique_ptr<engine::Waiter> waiter);
  static Result<std::unique_ptr<State>> make(const Options& options, const bootstrap::Policy& policy,
                                             const bootstrap::Meeting& meeting);
  Result<void> start(std::unique_ptr<bootstrap::Job> job, bootstrap::Service& service);
  Fabric& with_faults(Fabric& fabric);
  engine::Tuning tuning() const;
  Result<void> watch(bootstrap::Service& service);
  TimePoint deadline_of(const CallOptions& call) const;

  Options options_as(Rank rank, uint32_t world, const std::string& root) const;
  Result<std::unique_ptr<State>> join_as(const Part& part, bootstrap::Meeting meeting) const;
  Result<std::unique_ptr<State>> join_alone() const;
  Result<std::unique_ptr<State>> join_planned(const bootstrap::Regrouping& plan, TimePoint deadline) const;
  std::unique_ptr<State> succeed(std::unique_ptr<State> next, bool silent);
  Error because(Error error, const std::string& why) const;

  bool has_left(Rank peer) noexcept override {
    return running_.load(std::memory_order_acquire) == nullptr || !shm_ || shm_->has_left(peer);
  }
  bootstrap::Sharing* sharing() noexcept override { return &memory_; }
  void connected(Rank peer, uint16_t lane, Result<Stream> stream) override;
  void failed(const Error& error) override;
  bootstrap::Account account(const bootstrap::CallKey& key) override;
  void summarised(const bootstrap::Summary& summary) override;

  const pid_t process_;
  Options options_;  // complete
  Rank rank_;
  milliseconds timeout_;
  std::mutex shrinking_;
  // From which this one came. Doors that its next successor still has to keep, but not the one after that, and doors
  // that all that come of it keep: ranks that were silent may look for them.
  std::vector<std::shared_ptr<bootstrap::FormerJob>> formers_, missed_;
  std::vector<Rank> parents_;
  std::string home_;
  std::unique_ptr<State> doubtful_;  // guarded by shrinking_
  engine::Failure failure_;
  std::shared_ptr<engine::Waiter> waiter_;
  SharedMemory memory_;  // until join returns
  std::unique_ptr<shm::ShmFabric> shm_;
  tcp::TcpFabric tcp_;  // unused where there is shm_
  std::unique_ptr<faulty::Injector> injector_;
  std::unique_ptr<faulty::FaultyFabric> faulty_;  // around one of the two; mostly there is none
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Runner> runner_;
  std::atomic<const engine::Engine*> running_{nullptr};  // for the service thread: all is made
  std::shared_ptr<Operations> operations_;               // shared with every Work
  std::shared_ptr<Attendant> attendant_;                 // shared with the service thread
  bootstrap::StateDoor* state_door_ = nullptr;           // of the service, which the job holds
  uint64_t told_as_ = 0;
  std::shared_ptr<Postman> postman_;     // too; none without shm_
  std::unique_ptr<bootstrap::Job> job_;  // last, so destroyed first: no Handler call outlives it
};

}  // namespace rondo
