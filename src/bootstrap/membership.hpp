// What a Job does: the owner of one rank's star, data listener and half-made data connections.
#pragma once
#include <asio/steady_timer.hpp>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "bootstrap/dial.hpp"
#include "bootstrap/door.hpp"
#include "bootstrap/exchange.hpp"
#include "bootstrap/inquiry.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/regroup.hpp"
#include "bootstrap/star.hpp"
#include "bootstrap/watch.hpp"

namespace rondo::bootstrap {

/// join, leave, connect, announce and meet are for the user's threads; everything else runs on the service thread.
/// After join the described job (epoch, persons) never changes, so any thread may read it.
class Membership : public StarOwner, public std::enable_shared_from_this<Membership> {
 public:
  Membership(const Options& options, const Policy& policy, const std::shared_ptr<Service>& service,
             Handler& handler, const Limits& limits, const Meeting& meeting,
             const std::optional<Error>& excuse = {});

  Result<void> join();
  /// After it the handler is never called again. Waits at most `patience` for the service thread, never for
  /// peers.
  void leave() noexcept;
  void connect(Rank peer, uint16_t lane) noexcept;
  void announce(const Error& error) noexcept;
  void report(Report::Reason reason, const CallKey& key) noexcept;

  Result<Meeting> meet() const;

  // succession.cpp: what comes after this job.
  Result<Regrouping> regroup(uint64_t held, TimePoint deadline);
  std::shared_ptr<FormerJob> keep_door(std::shared_ptr<Service> service);

  Rank rank() const noexcept { return rank_; }
  uint32_t world() const noexcept { return world_; }
  uint32_t local_world() const noexcept { return local_world_; }
  uint64_t epoch() const noexcept { return job_.epoch; }
  std::vector<uint32_t> nodes() const;
  const Policy& policy() const noexcept { return job_.policy; }
  const std::string& transport_reason() const noexcept { return transport_reason_; }
  std::string address() const;
  const std::string& address_reason() const noexcept { return address_reason_; }
  bool shares_memory() const noexcept { return shares_memory_; }

 private:
  // A data connection. Only the lower rank dials.
  using Key = std::pair<Rank, uint16_t>;  // peer, lane
  struct Link {
    bool asked = false, settled = false;  // settled: the handler has been told
    TimePoint deadline{};                 // of one attempt, and of all that get answers which lead nowhere
    bool told = false;                    // that there is no answer
    std::shared_ptr<Dial> dial;
    std::shared_ptr<asio::steady_timer> retry;
  };

  void joined(Welcome welcome, DataListener listener) override;
  void join_failed(const Error& error) override;
  void deliver(const Message& message) override;
  void failed(Rank from, const Failure& failure);
  void left(Rank peer);
  void left_early(Rank peer);
  void watch_processes();
  void watch_all();
  /// False: it cannot be watched. `ended` runs in a handler, and not when this rank has left.
  bool watch(Rank peer, std::function<void()> ended);
  void ended_unheard(Rank peer);

  // Questions (questions.cpp): what ranks that make no progress have called.
  struct Question;
  class KeptDoor;
  void reported(Rank from, const Report& report);
  void ask(const CallKey& key);
  void await_answers(const CallKey& key, Question& question);
  void out_of_patience(const CallKey& key);
  void conclude(const CallKey& key);
  void disagree(const Inquiry::Disagreement& disagreement);
  Account account(const CallKey& key);
  void send_report(Report::Reason reason, const CallKey& key);
  void summarise(const Summary& summary);

  // Between joined and the end of join: agreeing on what carries the data.
  void open_memory_door();
  void agree();
  std::optional<Groups> not_to_be_tried() const;
  void exchange();
  Result<void> with_sharing(const Exchange::Use& use);
  void shared(Rank from, const Shared& outcome);
  void cannot_share(const Groups& groups);
  void pronounce(const Groups& groups);
  void agreement_missing();
  void conclude(const Groups& groups);
  void finish_join(Result<void> outcome);

  void open_regroup();
  void close_door() noexcept;

  void open_door(Descriptor listener);
  void open(Rank peer, uint16_t lane);
  void dial_anew(const Key& key);
  void dial(const Key& key);
  void dialled(const Key& key, Socket socket, const std::optional<Dial::Failure>& failure);
  void exhausted(int error);
  Verdict admit(const Claim& claim);
  void settle(const Key& key, Result<Stream> stream);
  std::string name(Rank peer) const;
  void close() noexcept;

  template <class Call>
  void tell(Call call) {
    const std::lock_guard lock(handler_mutex_);
    if (handler_) call(*handler_);
  }

  const Rank rank_;
  const uint32_t world_;
  const milliseconds timeout_;
  asio::io_context& context_;
  const Credentials credentials_;
  const Limits limits_;
  const std::shared_ptr<StarSetup> setup_;  // empty in a world of one
  std::mutex handler_mutex_;                // held while the handler is being called
  Handler* handler_;
  std::promise<Result<void>> joining_;
  bool join_finished_ = false;

  Welcome job_;
  uint32_t local_world_ = 1;
  std::shared_ptr<Star> star_;
  std::shared_ptr<Door> door_;
  std::shared_ptr<Regroup> regroup_;    // with the door
  std::weak_ptr<FormerJob> door_kept_;  // guarded by handler_mutex_
  Descriptor memory_listener_;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<asio::steady_timer> agreement_timer_;
  std::vector<std::optional<Shared>> reports_;  // rank 0: by rank; empty: it has decided
  bool shares_memory_ = false;
  std::string transport_reason_, address_reason_;
  asio::ip::address listens_at_;  // its own view of it: what the others dial is in job_.listeners
  uint32_t scope_ = 0;            // of this rank's link-local address, if it has one
  std::map<Key, Link> links_;
  std::vector<std::shared_ptr<Watch>> watches_;
  std::set<Rank> left_;
  std::map<CallKey, std::shared_ptr<Question>> questions_;  // rank 0: open ones
  bool failed_ = false, closed_ = false;
};

}  // namespace rondo::bootstrap
