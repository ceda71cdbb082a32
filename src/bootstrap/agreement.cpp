// The part of Membership in which all ranks agree on what carries the data.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/log.hpp"
#include "base/random.hpp"
#include "bootstrap/membership.hpp"
#include "bootstrap/person.hpp"

namespace rondo::bootstrap {
namespace {

// For the exchange of memory; less when the deadline is near, so that everybody can still be told.
constexpr milliseconds exchange_patience{10'000};
// Rank 0, not this one, says at the deadline who is missing.
constexpr milliseconds agreement_grace{400};
static_assert(news_patience < agreement_grace);

std::vector<uint32_t> one_each(size_t world) {
  std::vector<uint32_t> groups(world);
  for (size_t rank = 0; rank < world; ++rank) groups[rank] = uint32_t(rank);
  return groups;
}

}  // namespace

// All on the service thread.

// Listens before this rank is known to its peers, so that none comes too early.
void Membership::open_memory_door() {
  if (handler_->sharing() == nullptr || (rank_ == 0 && setup_->transport == Transport::tcp)) return;
  DoorName name;
  fill_random(name);
  auto listener = listen_on(door_address(name));
  if (!listener) return log::line(log::Level::info, int(rank_), "{}", listener.error().message);
  memory_listener_ = std::move(*listener);
  setup_->person.door = name;
}

// Every rank concludes the same from the welcome, or they try and rank 0 concludes for all.
void Membership::agree() {
  if (setup_->transport != job_.transport && setup_->transport != Transport::automatic)
    log::line(log::Level::info, int(rank_), "RONDO_TRANSPORT of rank 0 counts, not that of this rank");
  const Policy &mine = setup_->policy, &counts = job_.policy;
  if (mine.algorithm != counts.algorithm && mine.algorithm != "auto")
    log::line(log::Level::info, int(rank_), "RONDO_ALGORITHM of rank 0 counts, not that of this rank");
  if (mine.reproducible && !counts.reproducible)
    log::line(log::Level::info, int(rank_), "RONDO_REPRODUCIBLE of rank 0 counts, not that of this rank");
  if (const auto groups = not_to_be_tried()) return conclude(*groups);
  reports_.resize(world_);
  const TimePoint deadline = deadline_after(milliseconds(job_.remaining_ms));
  agreement_timer_ = std::make_shared<asio::steady_timer>(context_);
  agreement_timer_->expires_at(deadline + (rank_ == 0 ? milliseconds(0) : agreement_grace));
  agreement_timer_->async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->join_finished_) self->agreement_missing();
  });
  exchange();
}

std::optional<Groups> Membership::not_to_be_tried() const {
  if (job_.transport == Transport::tcp) return Groups{one_each(world_), 0, {}};
  const BootId& first = job_.persons[0].boot;
  for (Rank rank = 0; rank < world_; ++rank) {
    if (first == BootId{} || job_.persons[rank].boot != first)
      return Groups{one_each(world_), rank, name(rank) + " is not on rank 0's machine"};
    if (job_.persons[rank].node != job_.persons[0].node)
      return Groups{one_each(world_), rank, name(rank) + " has another RONDO_NODE than rank 0"};
    if (job_.persons[rank].door == DoorName{})
      return Groups{one_each(world_), rank, name(rank) + " has no memory to share"};
  }
  return std::nullopt;
}

void Membership::exchange() {
  exchange_ = std::make_shared<Exchange>(context_, credentials_, limits_, rank_, job_);
  const std::weak_ptr<Membership> weak = shared_from_this();
  const auto with = [weak](const Exchange::Use& use) -> Result<void> {
    const auto self = weak.lock();
    return self ? self->with_sharing(use) : Error{ErrorCode::aborted, "this rank is leaving"};
  };
  const auto report = [weak](const Shared& outcome) {
    const auto self = weak.lock();
    if (!self) return;
    if (self->rank_ == 0) return self->shared(0, outcome);
    self->star_->send({Kind::shared, self->rank_, 0, encode(outcome)});
  };
  const milliseconds patience = std::min(exchange_patience, milliseconds(job_.remaining_ms) * 3 / 4);
  exchange_->start(std::move(memory_listener_), deadline_after(patience), {with, report});
}

Result<void> Membership::with_sharing(const Exchange::Use& use) {
  const std::lock_guard lock(handler_mutex_);
  Sharing* sharing = handler_ != nullptr ? handler_->sharing() : nullptr;
  if (sharing == nullptr) return Error{ErrorCode::aborted, "this rank is leaving"};
  try {
    return use(*sharing);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::system, "memory has run out"};
  }
}

// Rank 0: one rank's report. What somebody has seen himself decides; consequences wait for it.
void Membership::shared(Rank from, const Shared& outcome) {
  if (rank_ != 0 || join_finished_ || reports_.empty()) return;
  reports_[from] = outcome;
  const auto bad = [](const auto& report) { return report && !report->ok; };
  const bool all = std::ranges::all_of(reports_, [](const auto& report) { return report.has_value(); });
  const bool seen = !outcome.ok && !outcome.consequence;
  if (!all && !seen) return;
  const auto failure = std::ranges::find_if(reports_, bad);
  if (const Shared* why = seen ? &outcome : failure != reports_.end() ? &**failure : nullptr)
    return cannot_share({one_each(world_), why->peer, why->why});
  pronounce({std::vector<uint32_t>(world_, 0), 0, {}});
}

// Nobody listens at the door of a rank that has just died, either: news of a death ends the join before this does.
void Membership::cannot_share(const Groups& groups) {
  reports_.clear();
  agreement_timer_->expires_after(news_patience);
  agreement_timer_->async_wait([weak = weak_from_this(), groups](const asio::error_code& error) {
    const auto self = std::static_pointer_cast<Membership>(weak.lock());
    if (!error && self && !self->join_finished_) self->pronounce(groups);
  });
}

void Membership::pronounce(const Groups& groups) {
  star_->send({Kind::groups, 0, everyone, encode(groups)});
  conclude(groups);
}

void Membership::agreement_missing() {
  if (reports_.empty()) return;  // the verdict is on its way
  Error error{ErrorCode::timeout, "rank 0 did not say in time what carries the data", Rank(0)};
  if (rank_ == 0) {
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < world_; ++rank)
      if (!reports_[rank]) missing.push_back(rank);
    error = {ErrorCode::timeout,
             fmt::format("{} did not exchange shared memory with the others within {}",
                         list_of(missing, world_), in_seconds(uint64_t(timeout_.count()))),
             missing.front()};
  }
  if (!std::exchange(failed_, true)) star_->send(failure_message(rank_, error));
  finish_join(error);
}

void Membership::conclude(const Groups& groups) {
  if (join_finished_) return;
  if (exchange_) exchange_->close();
  shares_memory_ = std::ranges::all_of(groups.group, [](uint32_t group) { return group == 0; });
  if (shares_memory_)
    transport_reason_ = "all ranks see each other's memory";
  else if (job_.transport == Transport::tcp)
    transport_reason_ = "RONDO_TRANSPORT=tcp";
  else
    transport_reason_ = groups.why;
  const auto end = [this](Sharing& sharing) {
    sharing.end(shares_memory_);
    return Result<void>();
  };
  const auto ended = with_sharing(end);
  memory_listener_ = Descriptor();
  if (!ended && shares_memory_) return finish_join(ended);
  if (!shares_memory_ && job_.transport == Transport::shm)
    return finish_join(Error{ErrorCode::system,
                             "RONDO_TRANSPORT=shm, but the ranks cannot share memory: " + groups.why,
                             groups.peer});
  if (rank_ == 0 && shares_memory_)
    log::line(log::Level::info, 0, "transport shm: all {} ranks share memory", world_);
  else if (rank_ == 0 && job_.transport == Transport::automatic)
    log::line(log::Level::info, 0, "transport tcp: the ranks cannot share memory: {}", groups.why);
  finish_join({});
}

void Membership::finish_join(Result<void> outcome) {
  if (std::exchange(join_finished_, true)) return;
  if (!outcome) closed_ = true;
  if (exchange_) exchange_->close();
  if (agreement_timer_) agreement_timer_->cancel();
  joining_.set_value(std::move(outcome));
}

}  // namespace rondo::bootstrap
