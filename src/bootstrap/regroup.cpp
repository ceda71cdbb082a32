#include "bootstrap/regroup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/root_address.hpp"
#include "bootstrap/person.hpp"

namespace rondo::bootstrap {
namespace {

using Word = RegroupNote::Word;

constexpr milliseconds dial_time{5000};

}  // namespace

Regroup::Regroup(Setup setup)
    : setup_(std::move(setup)), ticker_(setup_.context), deadline_timer_(setup_.context) {}

// ---- The call.

void Regroup::call(uint64_t held, TimePoint deadline, Done done) {
  if (phase_ == Phase::closed) return done(Error{ErrorCode::aborted, "this communicator is being destroyed"});
  if (phase_ == Phase::gone_on)
    return done(Error{ErrorCode::invalid_argument, "this communicator has a successor; shrink that"});
  held_ = held;
  done_ = std::move(done);
  deadline_timer_.expires_at(deadline);
  deadline_timer_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->done_) self->finish(self->out_of_time());
  });
  start_ticking();
  if (phase_ == Phase::idle) frozen_.clear();
  if (phase_ != Phase::planned) return seek();
  if (held_ == 0) return give_up_plan();
  if (leader_ == setup_.rank) return decide();
  if (const auto& channel = contacts_[leader_].channel)
    channel->send(
        {Kind::regroup, setup_.rank, leader_, encode(RegroupNote{Word::joined, leader_, held_, {}, {}})});
}

// An error leaves this rank as it was before the call, but for what it knows.
void Regroup::finish(Result<Regrouping> result) {
  if (!done_) return;
  deadline_timer_.cancel();
  const Done done = std::exchange(done_, nullptr);
  if (!result) {
    if (phase_ == Phase::planned) give_up_plan();
    phase_ = Phase::idle;
    hang_up_all();
    tell_guests();
  }
  done(std::move(result));
}

void Regroup::excluded(Rank by) {
  finish(Error{
      ErrorCode::peer_lost,
      fmt::format("{} has gone on in a new communicator without this rank, {}, which was taken for dead",
                  describe(by, setup_.persons[by]), setup_.rank),
      by});
}

Error Regroup::out_of_time() const {
  std::vector<Rank> absent, silent, others;
  bool gave_up = false;
  for (const auto& [peer, contact] : contacts_) {
    gave_up |= contact.gave_up;
    if (contact.waits || contact.gave_up)
      others.insert(others.end(), contact.awaits.begin(), contact.awaits.end());
    else
      (contact.answers ? absent : silent).push_back(peer);
  }
  const auto world = uint32_t(setup_.persons.size());
  std::string text = "the deadline passed before all ranks that live had called shrink";
  if (!absent.empty()) text += "; not called by " + list_of(absent, world);
  if (!silent.empty()) text += "; no answer from " + list_of(silent, world);
  if (!others.empty())
    text += fmt::format("; rank {} {} {}", leader_, gave_up ? "gave up waiting for" : "waits for",
                        list_of(others, world));
  if (phase_ == Phase::planned) text += "; they had met and did not all join";
  std::optional<Rank> peer;
  for (const auto* ranks : {&absent, &silent, &others})
    if (!peer && !ranks->empty()) peer = ranks->front();
  return {ErrorCode::timeout, text, peer};
}

void Regroup::go_on(uint64_t epoch) {
  if (phase_ == Phase::closed || phase_ == Phase::gone_on) return;
  phase_ = Phase::gone_on;
  successor_ = epoch;
  hang_up_all();
  tell_guests();
  for (const Guest& guest : std::exchange(guests_, {})) guest.channel->finish();
}

void Regroup::close() noexcept {
  phase_ = Phase::closed;
  ticker_.cancel();
  deadline_timer_.cancel();
  if (plan_is_off_) plan_is_off_->store(true);
  hang_up_all();
  for (const Guest& guest : guests_) guest.channel->finish();
  guests_.clear();
  done_ = nullptr;
}

// ---- Looking for the lowest rank that lives.

void Regroup::seek() {
  hang_up_all();
  leader_ = 0;
  while (leader_ < setup_.rank && (dead_.contains(leader_) || frozen_.contains(leader_))) ++leader_;
  phase_ = leader_ == setup_.rank ? Phase::leading : Phase::following;
  tell_guests();
  if (phase_ == Phase::following) return dial(leader_);
  for (const Rank rank : missing()) dial(rank);
  consider();
}

void Regroup::dial(Rank peer) {
  const uint16_t lane = phase_ == Phase::following ? arriving_lane : asking_lane;
  contacts_[peer].dial = Dial::start(
      setup_.context, setup_.doors[peer], setup_.credentials, Purpose::data,
      {setup_.epoch, setup_.rank, lane}, deadline_after(dial_time),
      [weak = weak_from_this(), peer](Socket socket, const std::optional<Dial::Failure>& failure) {
        if (const auto self = weak.lock()) self->dialled(peer, std::move(socket), failure);
      });
}

void Regroup::dialled(Rank peer, Socket socket, const std::optional<Dial::Failure>& failure) {
  Contact& contact = contacts_[peer];
  contact.dial = nullptr;
  if (failure && failure->nobody_listens) {
    dead_.insert(peer);
    frozen_.erase(peer);
    hang_up(peer);
    return phase_ == Phase::following ? seek() : consider();
  }
  if (failure) {                                                       // again at the next tick
    if (failure->error.code == ErrorCode::system) contact.missed = 0;  // not the peer's fault
    return;
  }
  contact.channel = std::make_shared<Channel>(std::move(socket), longest_welcome_body);
  contact.channel->start(
      [weak = weak_from_this(), peer](const Message& message) {
        if (const auto self = weak.lock()) self->told(peer, message);
      },
      [weak = weak_from_this(), peer](const std::string&) {
        if (const auto self = weak.lock()) self->lost(peer);
      });
}

void Regroup::told(Rank peer, const Message& message) {
  const auto found = contacts_.find(peer);
  if (found == contacts_.end()) return;
  found->second.missed = 0;
  // A leader that took a lower rank for frozen makes way for it.
  if (frozen_.erase(peer) > 0 && phase_ == Phase::leading && peer < setup_.rank) return seek();
  const auto note = message.kind == Kind::regroup ? decode_regroup(message.body) : std::nullopt;
  if (!note) return;
  switch (note->word) {
    case Word::idle:
    case Word::waits:
    case Word::gone_on:
      return told_state(peer, *note);
    case Word::plan:
      return planned(*note);
    case Word::joined:
      return;
  }
}

void Regroup::told_state(Rank peer, const RegroupNote& note) {
  if (note.word != Word::gone_on) {
    Contact& contact = contacts_[peer];
    contact.answers = true;
    contact.gave_up = note.word != Word::waits && (contact.waits || contact.gave_up);
    contact.waits = note.word == Word::waits;
    if (!contact.gave_up) contact.awaits = note.ranks;
    std::erase_if(contact.awaits, [&](Rank rank) { return rank >= setup_.persons.size(); });
    if (contact.waits && note.leader < peer && phase_ == Phase::following)
      ++contact.elsewhere;
    else
      contact.elsewhere = 0;
    return;
  }
  if (!done_) return lost(peer);
  if (held_ == 0 || note.number != held_) return excluded(peer);
  go_on(held_);
  finish(Regrouping{true, {}, {}});
}

void Regroup::planned(const RegroupNote& note) {
  const auto& members = note.ranks;
  const bool ascending = std::ranges::adjacent_find(members, std::greater_equal()) == members.end();
  const bool sound = phase_ == Phase::following && done_ && ascending &&
                     std::ranges::binary_search(members, setup_.rank) && members.front() == leader_ &&
                     members.back() < setup_.persons.size() && parse_root(note.root);
  if (!sound) return lost(leader_);
  agree_on({false, members, {note.root, note.number, nullptr, nullptr}, note.silent});
}

// Of a plan: what it says, and that it may be called off.
void Regroup::agree_on(Regrouping plan) {
  phase_ = Phase::planned;
  members_ = plan.members;
  plan_is_off_ = std::make_shared<std::atomic<bool>>(false);
  plan.meeting.failure = [off = plan_is_off_]() -> std::optional<Error> {
    if (!off->load()) return std::nullopt;
    return Error{ErrorCode::peer_lost, "one of the ranks that were to join was lost"};
  };
  finish(std::move(plan));
}

void Regroup::lost(Rank peer) {
  const auto found = contacts_.find(peer);
  if (found == contacts_.end()) return;
  if (phase_ == Phase::planned) return give_up_plan();
  if (found->second.channel) found->second.channel->finish();
  found->second.channel = nullptr;  // dialled again at the next tick
}

void Regroup::hang_up(Rank peer) noexcept {
  const auto found = contacts_.find(peer);
  if (found == contacts_.end()) return;
  if (found->second.dial) found->second.dial->cancel();
  if (found->second.channel) found->second.channel->finish();
  contacts_.erase(found);
}

void Regroup::hang_up_all() noexcept {
  while (!contacts_.empty()) hang_up(contacts_.begin()->first);
}

// ---- The door.

Verdict Regroup::admit(const Claim& claim) const {
  const bool known = claim.tag == setup_.epoch && claim.rank < setup_.persons.size() &&
                     claim.rank != setup_.rank && phase_ != Phase::closed;
  return known ? Verdict::welcome : Verdict::unknown_tag;
}

void Regroup::entered(const Claim& claim, Socket socket) {
  const auto channel = std::make_shared<Channel>(std::move(socket), longest_small_body);
  const std::weak_ptr<Channel> weak_channel = channel;
  channel->start(
      [weak = weak_from_this(), weak_channel](const Message& message) {
        const auto self = weak.lock();
        const auto from = weak_channel.lock();
        if (self && from) self->heard(from, message);
      },
      [weak = weak_from_this(), weak_channel](const std::string&) {
        if (const auto self = weak.lock()) self->guest_lost(weak_channel.lock());
      });
  channel->send({Kind::regroup, setup_.rank, claim.rank, encode(state())});
  if (phase_ == Phase::gone_on || phase_ == Phase::closed) return channel->finish();
  const bool arrived = claim.lane == arriving_lane;
  while (const Guest* before = guest(claim.rank)) {  // it has dialled again
    const auto old = before->channel;
    old->finish();
    guest_lost(old);
  }
  guests_.push_back({claim.rank, arrived, channel});
  start_ticking();
  frozen_.erase(claim.rank);
  if (!done_ || phase_ == Phase::planned) return;
  if (claim.rank < leader_) {
    dead_.erase(claim.rank);
    return seek();
  }
  if (phase_ != Phase::leading || !arrived) return;
  hang_up(claim.rank);
  consider();
}

void Regroup::heard(const std::shared_ptr<Channel>& channel, const Message& message) {
  const auto found = std::ranges::find(guests_, channel, &Guest::channel);
  if (found == guests_.end()) return;
  found->missed = 0;
  const auto note = message.kind == Kind::regroup ? decode_regroup(message.body) : std::nullopt;
  if (!note || note->word != Word::joined) return;
  found->joined = note->number;
  decide();
}

void Regroup::guest_lost(const std::shared_ptr<Channel>& channel) {
  const auto found = std::ranges::find(guests_, channel, &Guest::channel);
  if (found == guests_.end()) return;
  const Guest gone = *found;
  guests_.erase(found);
  if (!gone.arrived || phase_ == Phase::closed) return;
  if (phase_ == Phase::planned && leader_ == setup_.rank) return give_up_plan();
  if (phase_ == Phase::leading && !contacts_.contains(gone.rank)) dial(gone.rank);
}

const Regroup::Guest* Regroup::guest(Rank rank) const {
  const auto found = std::ranges::find(guests_, rank, &Guest::rank);
  return found == guests_.end() ? nullptr : &*found;
}

std::vector<Rank> Regroup::missing() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < setup_.persons.size(); ++rank) {
    const Guest* there = guest(rank);
    if (rank != setup_.rank && !dead_.contains(rank) && !(there && there->arrived)) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace rondo::bootstrap
