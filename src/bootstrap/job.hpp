// One communicator's membership in a job: how ranks find and trust each other, and how they tell each other
// of failures while the data travel elsewhere.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/stream.hpp"
#include "bootstrap/meeting.hpp"
#include "bootstrap/report.hpp"
#include "bootstrap/wire.hpp"
#include "rondo/options.hpp"
#include "rondo/result.hpp"

namespace rondo::bootstrap {

class Service;
struct Regrouping;

/// What a stranger, who has not proven the secret yet, may do at a listener.
struct Limits {
  milliseconds patience{5000};  // until it must have proven it
  size_t waiting = 64;          // strangers at once; one more, and the oldest is closed
};

/// How this rank's memory becomes visible to the other ranks of the machine. The job moves descriptors and says
/// when; what is in the memory is the owner's business. Service thread; must not block. Any error means that
/// the job shares no memory; std::bad_alloc counts as one.
class Sharing {
 public:
  virtual ~Sharing() = default;
  /// First. Makes the memory; its descriptor, which stays the owner's until end().
  virtual Result<int> begin(Rank rank, uint32_t world, uint64_t epoch) = 0;
  /// `memory` is what the peer's begin() gave. Then both ranks have attached, then both have checked.
  virtual Result<void> attach(Rank peer, Descriptor memory) = 0;
  virtual Result<void> check(Rank peer) = 0;
  virtual Result<void> confirm(Rank peer) = 0;
  /// Whether all ranks of the job now see each other's memory and are going to use it.
  virtual void end(bool shared) = 0;
};

/// The door of a job that this rank has gone on from, or is about to: open until destroyed.
class FormerJob {
 public:
  virtual ~FormerJob() = default;
  /// This rank has gone on in the job of that epoch: whoever asks is told. The first one counts.
  virtual void succeeded_by(uint64_t epoch) noexcept = 0;
};

/// What a Job tells its owner. Called on the service thread; must not block, nor throw anything but
/// std::bad_alloc, after which the owner's own deadlines count.
class Handler {
 public:
  virtual ~Handler() = default;
  /// Where there is none, the job shares no memory. Before join has returned.
  virtual Sharing* sharing() noexcept { return nullptr; }
  /// A proven stream to `peer` for `lane` (either side may have asked for it), or why
  /// there is none. Once per (peer, lane); may come before join has returned.
  virtual void connected(Rank peer, uint16_t lane, Result<Stream> stream) = 0;
  /// The job has failed: a rank died, aborted or reported an error. Called at most once, and not after
  /// announce(). The error's peer is the rank to blame.
  virtual void failed(const Error& error) = 0;
  /// Whether `peer`, whose process has ended, had closed what it shared with this rank; true where it shared nothing.
  virtual bool has_left(Rank) noexcept { return true; }
  /// What this rank has to say about a call.
  virtual Account account(const CallKey&) { return {}; }
  /// The answer to a report that a call ends.
  virtual void summarised(const Summary&) {}
};

/// Joined when made. Destruction leaves the job in order: the other ranks learn that this is no failure.
/// After it the handler is not called again. It takes well under a second and never waits for peers; it must
/// not happen inside a call of the handler. A rank that has left cannot be asked to connect any more, and
/// once rank 0 has left nobody passes messages on: what happens to the others then shows on their data
/// connections only.
class Job {
 public:
  /// Blocks until all ranks have joined, at most options.init_timeout. `options` is complete (see
  /// base/environment). Errors: timeout (names the missing ranks, on every rank that joined), refused
  /// (secret, version; names both sides), invalid_argument (two processes claim one rank, or world sizes
  /// differ), system (also when RONDO_TRANSPORT=shm cannot be had). With a `meeting`, options.root is its root.
  /// The policy is this rank's wish.
  static Result<std::unique_ptr<Job>> join(const Options& options, const Policy& policy,
                                           std::shared_ptr<Service> service, Handler& handler,
                                           const Limits& limits = {}, const Meeting& meeting = {});
  /// This rank cannot take part: tells rank 0, or as rank 0 those that come, so that they need not wait for it: their
  /// join then fails with `why`. `options` need only say where and who (see base/environment); blocks for
  /// options.init_timeout at most. Whether rank 0 was told, or all others.
  static bool decline(const Options& options, const Error& why, const std::shared_ptr<Service>& service);
  virtual ~Job() = default;

  virtual Rank rank() const noexcept = 0;
  virtual uint32_t world() const noexcept = 0;
  /// Ranks of this job that run on this machine (as far as a cheap comparison of boot ids tells).
  virtual uint32_t local_world() const noexcept = 0;
  /// Every rank sees every other's memory, and all use it; the same on every rank.
  virtual bool shares_memory() const noexcept = 0;
  /// A number for every rank, the same for ranks of one machine that give the same Options::node.
  virtual std::vector<uint32_t> nodes() const = 0;
  /// Rank 0's, which counts.
  virtual const Policy& policy() const noexcept = 0;
  /// Why the data travel as they do; "" where nothing was to be decided.
  virtual std::string transport_reason() const = 0;
  /// Where this rank's peers find it; "": nowhere.
  virtual std::string address() const = 0;
  /// "interface eth0: ..."
  virtual std::string address_reason() const = 0;
  /// Agreed and random: two communicators never share it.
  virtual uint64_t epoch() const noexcept = 0;
  /// Any thread. Starts making the connection (peer, lane), a lane below 65534; idempotent. The lower rank dials; the higher rank
  /// asks it to over the control plane, so the peer need not be inside a call.
  virtual void connect(Rank peer, uint16_t lane) noexcept = 0;
  /// Any thread. Tells every rank that this one has failed with `error`; never waits for them.
  virtual void announce(const Error& error) noexcept = 0;
  /// Any thread. This rank makes no progress with a call, as Handler::account will say. All ranks are asked about
  /// it: if they disagree, the job fails on all of them, with `mismatch`; otherwise a reporter whose call ends
  /// gets Handler::summarised. Without rank 0 nobody answers.
  virtual void report(Report::Reason reason, const CallKey& key) noexcept = 0;
  /// Any thread. Opens a place to meet for a new job of ranks of this one, whose rank 0 this rank will be;
  /// the others are told root and tag by whoever wants them to join. Errors: system.
  virtual Result<Meeting> meet() const = 0;
  /// What this rank is to do next on the way to a job of those that are left of this one (regroup.hpp), also after this
  /// one has failed. Blocks until the deadline at most. In a world of one there is nothing to regroup.
  virtual Result<Regrouping> regroup(uint64_t held, TimePoint deadline) = 0;
  /// Keeps the door open, even when the job has been left, for ranks that come to regroup too late.
  virtual std::shared_ptr<FormerJob> keep_door() = 0;
};

}  // namespace rondo::bootstrap
