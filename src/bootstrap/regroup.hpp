// How the ranks of a job that are left find each other after a failure, without rank 0 if need be: the lowest of
// them leads.
//
//   rank 2                           rank 1, the lowest that lives            rank 0
//   door of rank 0: refused, dead                                             (dead)
//   door of rank 1: here I am ---->  has all ranks that are not dead?
//                              <---- plan: members, where they meet
//   joins the new job                joins the new job as its rank 0
//   joined, epoch E            ----> have all members joined E?
//                              <---- gone on in E                             the one decision
//
// Everybody's door answers what its rank does: nothing (not called yet), waits (and who leads it), has gone on in
// E. Who is refused at a door knows that the process, or its communicator and all that came of it, is gone.
// docs/failures.md argues that no two groups go on.
#pragma once
#include <asio/steady_timer.hpp>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "bootstrap/channel.hpp"
#include "bootstrap/dial.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/meeting.hpp"

namespace rondo::bootstrap {

/// What a rank that regroups is to do next.
struct Regrouping {
  bool gone_on = false;       // all members hold the job that this rank holds: it is the successor
  std::vector<Rank> members;  // else: join a new job of these, in this order
  Meeting meeting;            // there; its failure tells that the plan is off
  bool silent = false;        // ranks that are no members may live: they did not answer
};

/// Of one rank, as long as its door is open. Service thread; its owner closes it.
class Regroup : public std::enable_shared_from_this<Regroup> {
 public:
  struct Setup {
    asio::io_context& context;
    Credentials credentials;
    uint64_t epoch;
    Rank rank;
    std::vector<Person> persons;  // by rank
    std::vector<Address> doors;   // by rank
    std::function<Result<Meeting>()> meet;
  };
  explicit Regroup(Setup setup);

  /// `held`: the epoch of the new job that this rank has joined as planned, 0: none. One at a time.
  using Done = std::function<void(Result<Regrouping>)>;
  void call(uint64_t held, TimePoint deadline, Done done);
  /// This rank has gone on in another job, and says so to whoever asks.
  void go_on(uint64_t epoch);
  /// A claim for one of the two lanes below.
  static bool is_for(const Claim& claim) noexcept { return claim.lane >= asking_lane; }
  Verdict admit(const Claim& claim) const;
  void entered(const Claim& claim, Socket socket);
  void close() noexcept;

 private:
  static constexpr uint16_t asking_lane = 0xfffe, arriving_lane = 0xffff;
  enum class Phase : uint8_t { idle, following, leading, planned, gone_on, closed };
  // A connection to another rank's door: of a follower the leader's, of a leader those of all that are missing.
  struct Contact {
    std::shared_ptr<Dial> dial;
    std::shared_ptr<Channel> channel;
    uint32_t missed = 0;   // ticks without a word
    bool answers = false;  // has said what it does: nothing, or `waits`
    bool waits = false;
    bool gave_up = false;      // waited during this call, and does not any more
    uint32_t elsewhere = 0;    // how often it has said in a row that it follows a lower one
    std::vector<Rank> awaits;  // whom it misses, or missed when it gave up
  };
  // A connection to this rank's door.
  struct Guest {
    Rank rank;
    bool arrived;
    std::shared_ptr<Channel> channel;
    uint32_t missed = 0;
    uint64_t joined = 0;  // the epoch
  };

  void seek();
  void dial(Rank peer);
  void dialled(Rank peer, Socket socket, const std::optional<Dial::Failure>& failure);
  void told(Rank peer, const Message& message);
  void told_state(Rank peer, const RegroupNote& note);
  void planned(const RegroupNote& note);
  void agree_on(Regrouping plan);
  void lost(Rank peer);
  void hang_up(Rank peer) noexcept;
  void hang_up_all() noexcept;

  void heard(const std::shared_ptr<Channel>& channel, const Message& message);
  void guest_lost(const std::shared_ptr<Channel>& channel);
  const Guest* guest(Rank rank) const;
  void consider();
  void plan();
  void give_up_plan() noexcept;
  void decide();

  void tick();
  void start_ticking();
  RegroupNote state() const;
  std::vector<Rank> missing() const;
  void tell_guests();
  void finish(Result<Regrouping> result);
  void excluded(Rank by);
  Error out_of_time() const;

  const Setup setup_;
  asio::steady_timer ticker_, deadline_timer_;
  bool ticking_ = false;
  Phase phase_ = Phase::idle;
  Rank leader_ = 0;
  std::set<Rank> dead_, frozen_;  // frozen: as far as this call has found
  std::map<Rank, Contact> contacts_;
  std::vector<Guest> guests_;
  std::vector<Rank> members_;  // of the plan
  std::shared_ptr<std::atomic<bool>> plan_is_off_;
  uint64_t held_ = 0, successor_ = 0;
  Done done_;
};

}  // namespace rondo::bootstrap
