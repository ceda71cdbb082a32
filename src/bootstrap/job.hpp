// One communicator's membership in a job: how ranks find and trust each other, and how they tell each other
// of failures while the data travel elsewhere.
#pragma once
#include <cstdint>
#include <memory>

#include "base/descriptor.hpp"
#include "rondo/options.hpp"
#include "rondo/result.hpp"

namespace rondo::bootstrap {

class Service;

/// What a Job tells its owner. Called on the service thread; must not block.
class Handler {
 public:
  virtual ~Handler() = default;
  /// A proven, non-blocking stream socket to `peer` for `lane` (either side may have asked for it), or why
  /// there is none.
  virtual void connected(Rank peer, uint16_t lane, Result<Descriptor> socket) noexcept = 0;
  /// The job has failed: a rank died, aborted or reported an error. At most the first one matters.
  virtual void failed(const Error& error) noexcept = 0;
};

/// Joined when made. Destruction leaves the job in order: the other ranks learn that this is no failure.
class Job {
 public:
  /// Blocks until all ranks have joined, at most options.init_timeout. `options` is complete (see
  /// base/environment). Errors: timeout (names the missing ranks, on every rank that joined), refused
  /// (secret, version; names both sides), invalid_argument (two processes claim one rank, or world sizes
  /// differ), system.
  static Result<std::unique_ptr<Job>> join(const Options& options, std::shared_ptr<Service> service,
                                           Handler& handler);
  virtual ~Job() = default;

  virtual Rank rank() const noexcept = 0;
  virtual uint32_t world() const noexcept = 0;
  /// Ranks of this job that run on this machine (as far as a cheap comparison of boot ids tells).
  virtual uint32_t local_world() const noexcept = 0;
  /// Agreed and random: two communicators never share it.
  virtual uint64_t epoch() const noexcept = 0;
  /// Any thread. Starts making the connection (peer, lane); idempotent. The lower rank dials; the higher rank
  /// asks it to over the control plane, so the peer need not be inside a call.
  virtual void connect(Rank peer, uint16_t lane) noexcept = 0;
  /// Any thread. Tells every rank that this one has failed with `error`; never waits for them.
  virtual void announce(const Error& error) noexcept = 0;
};

}  // namespace rondo::bootstrap
