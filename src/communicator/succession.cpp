// Communicators that come of another: parts, the successor of one that has failed, one with newcomers.
#include <fmt/format.h>

#include <algorithm>

#include "communicator/state.hpp"

namespace rondo {
namespace {

constexpr int most_refusals = 3;

}  // namespace

// Those of this one, but for where and who.
Options Communicator::State::options_as(Rank rank, uint32_t world, const std::string& root) const {
  Options options = options_;
  options.rank = rank;
  options.world = world;
  options.root = root;
  if (rank_ != 0 || rank != 0) options.listen.clear();  // rank 0's address alone
  options.fault.clear();                                // it names ranks and operations of the job
  return options;
}

Result<std::unique_ptr<Communicator::State>> Communicator::State::join_as(const Part& part,
                                                                          bootstrap::Meeting meeting) const {
  const Options options = options_as(part.rank, uint32_t(part.members.size()), meeting.root);
  auto state = join(options, job_->policy(), meeting);
  if (state) (*state)->parents_ = part.members;
  return state;
}

Result<std::unique_ptr<Communicator::State>> Communicator::State::join_part(
    const Part& part, bootstrap::Meeting meeting) const {
  std::optional<Error> own;  // of this communicator, in its own ranks
  meeting.failure = [this, &own] {
    if (failure_.is_set()) own = failure_.get();
    return own;
  };
  auto state = join_as(part, std::move(meeting));
  if (!state && !own) return as_parent_sees(state.error(), part.members);
  return state;
}

// As in a part, a failure of this communicator ends the wait.
Result<std::unique_ptr<Communicator::State>> Communicator::State::join_grown(uint32_t newcomers,
                                                                             const std::string& root,
                                                                             milliseconds patience) const {
  Options options = options_as(rank_, world() + newcomers, root);
  options.init_timeout = patience;
  if (root != home_) options.listen.clear();  // it is the way to that root alone
  bootstrap::Meeting open;
  open.failure = [this] { return failure_.is_set() ? std::optional(failure_.get()) : std::nullopt; };
  auto state = join(options, job_->policy(), open);
  if (state) (*state)->options_.init_timeout = options_.init_timeout;
  return state;
}

std::unique_ptr<Communicator::State> Communicator::State::confirm(std::unique_ptr<State> next) {
  const std::lock_guard lock(shrinking_);
  return succeed(std::move(next), false);
}

void Communicator::State::doubt(std::unique_ptr<State> next) {
  const std::lock_guard lock(shrinking_);
  doubtful_ = std::move(next);
}

Result<std::unique_ptr<Communicator::State>> Communicator::State::join_alone() const {
  auto state = join_as({{0}, 0}, {});
  if (state) (*state)->home_ = home_;
  return state;
}

// What all that are left hold becomes the successor; what has not become it is kept as a door, which tells
// those that took it for the successor.
Result<std::unique_ptr<Communicator::State>> Communicator::State::shrink(const CallOptions& call) {
  const std::lock_guard lock(shrinking_);
  const TimePoint deadline = deadline_of(call);
  if (world() == 1) return join_alone();
  std::unique_ptr<State> next = std::move(doubtful_);
  std::string last;     // why there is none
  bool silent = false;  // `next` leaves out ranks that may live
  std::vector<Rank> members;
  int refusals = 0;  // by the system, of a communicator of these members
  while (true) {
    auto step = job_->regroup(next ? next->job_->epoch() : 0, deadline);
    if (step && step->gone_on) return succeed(std::move(next), silent);
    if (next) formers_.push_back(next->job_->keep_door());
    next.reset();
    if (!step) return because(step.error(), last);
    auto joined = join_planned(*step, deadline);
    if (joined) {
      next = std::move(*joined);
      silent = step->silent;
    } else {
      last = "; the last attempt to join ended with: " + joined.error().message;
      // A death may look so; then the members differ the next time.
      if (joined.error().code != ErrorCode::system) continue;
      refusals = step->members == members ? refusals + 1 : 1;
      members = step->members;
      if (refusals < most_refusals) continue;
      (void)job_->regroup(0, Clock::now());  // the others need not wait
      return joined.error();
    }
  }
}

// This communicator has failed already: what ends the join is that the plan is off, or the deadline.
Result<std::unique_ptr<Communicator::State>> Communicator::State::join_planned(
    const bootstrap::Regrouping& plan, TimePoint deadline) const {
  const auto own = std::find(plan.members.begin(), plan.members.end(), rank_);
  const Part part{plan.members, Rank(own - plan.members.begin())};
  bootstrap::Meeting meeting = plan.meeting;
  meeting.failure = [off = plan.meeting.failure, deadline]() -> std::optional<Error> {
    if (Clock::now() >= deadline) return Error{ErrorCode::timeout, "the deadline of shrink has passed"};
    return off();
  };
  return join_as(part, std::move(meeting));
}

// Who holds the successor has called `shrink` or `grow` on this communicator, so it needs no door of an older one, nor of
// an attempt; and who is dead looks for none. But who was silent may look for any. The door of this one itself is for
// those that have not heard yet of the successor: until that, too, has one.
std::unique_ptr<Communicator::State> Communicator::State::succeed(std::unique_ptr<State> next, bool silent) {
  const auto own = job_->keep_door();
  const uint64_t epoch = next->job_->epoch();
  for (const auto* doors : {&formers_, &missed_})
    for (const auto& door : *doors) door->succeeded_by(epoch);
  own->succeeded_by(epoch);
  next->missed_ = std::move(missed_);
  if (silent) {
    next->missed_.insert(next->missed_.end(), formers_.begin(), formers_.end());
    next->missed_.push_back(own);
  } else {
    next->formers_.push_back(own);
  }
  formers_.clear();
  missed_.clear();
  if (next->home_.empty()) next->home_ = home_;
  return next;
}

Error Communicator::State::because(Error error, const std::string& why) const {
  error.message = fmt::format("rank {} of {}, shrink: {}{}", rank_, world(), error.message, why);
  return error;
}

}  // namespace rondo
