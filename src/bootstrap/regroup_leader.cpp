// The parts of Regroup in which the leader decides, and in which all find out who answers.
#include <algorithm>

#include "bootstrap/regroup.hpp"

namespace rondo::bootstrap {
namespace {

using Word = RegroupNote::Word;

// Both ends of a connection send something at every tick. Ticks are counted, not time: a process that was
// stopped itself must not blame the others for it.
constexpr milliseconds tick_time{20};
constexpr uint32_t patience = 40;
constexpr size_t most_told = 16;

}  // namespace

// ---- The leader.

// Those that do not answer may wake, and find that these do not answer, so only the larger part goes on without
// the other; of two halves the one with the lowest rank.
void Regroup::consider() {
  if (phase_ != Phase::leading || !done_) return;
  const auto without = missing();
  if (!std::ranges::all_of(without, [&](Rank rank) { return frozen_.contains(rank); })) return;
  const size_t here = setup_.persons.size() - without.size() - dead_.size();
  const bool larger = here > without.size() || (here == without.size() && setup_.rank < without.front());
  if (larger) plan();
}

void Regroup::plan() {
  Regrouping regrouping;
  const auto without = missing();
  regrouping.silent = !without.empty();
  for (Rank rank = 0; rank < setup_.persons.size(); ++rank)
    if (!dead_.contains(rank) && !std::ranges::binary_search(without, rank))
      regrouping.members.push_back(rank);
  if (regrouping.members.size() > 1) {
    auto meeting = setup_.meet();
    if (!meeting) return finish(meeting.error());
    regrouping.meeting = std::move(*meeting);
  }
  hang_up_all();
  const auto& [root, tag, listener, failure] = regrouping.meeting;
  const Bytes note =
      encode(RegroupNote{Word::plan, setup_.rank, tag, regrouping.members, root, regrouping.silent});
  for (Guest& guest : guests_) guest.joined = 0;
  for (const Guest& guest : std::vector(guests_))
    if (guest.arrived) guest.channel->send({Kind::regroup, setup_.rank, guest.rank, note});
  agree_on(std::move(regrouping));
}

// Of a leader all followers learn of it by the end of their connections; no one has gone on.
void Regroup::give_up_plan() noexcept {
  plan_is_off_->store(true);
  phase_ = Phase::idle;
  hang_up_all();
  if (leader_ == setup_.rank) {
    const auto members = std::exchange(guests_, {});
    for (const Guest& guest : members) guest.channel->finish();
  }
  if (done_) seek();
}

void Regroup::decide() {
  if (phase_ != Phase::planned || leader_ != setup_.rank || !done_) return;
  for (const Rank rank : members_) {
    if (rank == setup_.rank) continue;
    const Guest* member = guest(rank);
    if (!member) return give_up_plan();
    if (member->joined == 0) return;
    if (member->joined != held_) return give_up_plan();
  }
  go_on(held_);
  finish(Regrouping{true, {}, {}});
}

// ---- Signs of life.

void Regroup::start_ticking() {
  if (std::exchange(ticking_, true)) return;
  ticker_.expires_after(tick_time);
  ticker_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!self) return;
    self->ticking_ = false;
    if (error || self->phase_ == Phase::closed) return;
    self->tick();
    if (self->done_ || !self->guests_.empty() || self->phase_ == Phase::planned) self->start_ticking();
  });
}

void Regroup::tick() {
  tell_guests();
  std::vector<std::shared_ptr<Channel>> silent;
  for (Guest& guest : guests_)
    if (++guest.missed > patience) silent.push_back(guest.channel);
  for (const auto& channel : silent) {
    channel->finish();
    guest_lost(channel);
  }
  bool elsewhere = false;
  std::vector<Rank> peers;
  for (auto& [peer, contact] : contacts_) peers.push_back(peer);
  for (const Rank peer : peers) {
    const auto found = contacts_.find(peer);
    if (found == contacts_.end()) continue;
    Contact& contact = found->second;
    if (!contact.dial && !contact.channel) dial(peer);
    if (contact.channel) contact.channel->send({Kind::beat, setup_.rank, peer, {}});
    if (++contact.missed > patience) frozen_.insert(peer);
    elsewhere = elsewhere || contact.elsewhere > patience;
  }
  if (phase_ == Phase::planned && leader_ != setup_.rank && frozen_.contains(leader_)) return give_up_plan();
  if (phase_ == Phase::following && elsewhere) {  // whoever this rank follows, follows one who lives
    frozen_.clear();
    return seek();
  }
  if (phase_ == Phase::following && frozen_.contains(leader_)) return seek();
  consider();
}

RegroupNote Regroup::state() const {
  RegroupNote note;
  switch (phase_) {
    case Phase::idle:
    case Phase::closed:
      return note;
    case Phase::gone_on:
      note.word = Word::gone_on;
      note.number = successor_;
      return note;
    case Phase::leading:
      note.ranks = missing();
      note.ranks.resize(std::min(note.ranks.size(), most_told));
      [[fallthrough]];
    case Phase::following:
    case Phase::planned:
      note.word = Word::waits;
      note.leader = leader_;
  }
  return note;
}

void Regroup::tell_guests() {
  if (guests_.empty()) return;
  const Bytes note = encode(state());
  for (const Guest& guest : std::vector(guests_))
    guest.channel->send({Kind::regroup, setup_.rank, guest.rank, note});
}

}  // namespace rondo::bootstrap
