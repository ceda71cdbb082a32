// The part of Hub that begins when all ranks have joined: it passes messages on, and finds out who is lost.
#include <fmt/format.h>

#include "bootstrap/hub.hpp"
#include "bootstrap/person.hpp"

namespace rondo::bootstrap {

void Hub::beat() {
  tell_others({Kind::beat, 0, everyone, {}});
  for (Rank rank = 1; rank < setup_.world; ++rank)
    if (heartbeat_.is_silent(rank) && !members_[rank].gone) silent(rank);
}

std::vector<uint64_t> Hub::silence_ms() const {
  std::vector<uint64_t> silences(setup_.world);
  for (Rank rank = 1; rank < setup_.world; ++rank)
    silences[rank] = uint64_t(heartbeat_.silence(rank).count());
  return silences;
}

void Hub::send(const Message& message) {
  if (phase_ != Phase::running) return;
  if (message.to == everyone) return tell_others(message);
  if (message.to < setup_.world && members_[message.to].channel && !members_[message.to].gone)
    members_[message.to].channel->send(message);
}

void Hub::received(Rank from, const Message& message) {
  if (phase_ == Phase::gathering) {
    if (message.kind != Kind::leave) return lost(from, "sent a message before the job was complete");
    return lost(from, "left before the job was complete");
  }
  if (phase_ == Phase::closed || members_[from].gone) return;
  if (message.from != from) return lost(from, "spoke in the name of another rank");
  heartbeat_.heard(from);
  switch (message.kind) {
    case Kind::join:
    case Kind::welcome:
    case Kind::groups:
    case Kind::ask:
    case Kind::summary:
    case Kind::regroup:
      return lost(from, "sent a message out of turn");
    case Kind::failed:
      // A job fails once: what follows are consequences, and N ranks telling N ranks would be a storm.
      if (std::exchange(failure_told_, true)) return;
      break;
    case Kind::leave:
      members_[from].gone = true;
      break;
    case Kind::beat:
      return;
    case Kind::ended:
      if (const auto rank = decode_rank(message.body); rank && *rank > 0 && *rank < setup_.world)
        ended(*rank);
      return;
    case Kind::dial:
    case Kind::shared:
    case Kind::report:
      break;
  }
  send(message);
  if (message.to == everyone || message.to == 0) tell_owner(message);
}

// Whoever left in order has said so before it ended, which has been read by then.
void Hub::ended(Rank rank) {
  later(setup_.context, loss_delay, [weak = weak_from_this(), rank] {
    if (const auto self = weak.lock()) self->lost(rank, "ended");
  });
}

void Hub::lost(Rank rank, const std::string& why) {
  Member& member = members_[rank];
  if (phase_ == Phase::closed || member.gone) return;
  member.gone = true;
  const Error error{
      ErrorCode::peer_lost,
      fmt::format("{} {}{}", describe(rank, member.join.person), why,
                  phase_ == Phase::gathering ? " before all ranks had joined: it died or was killed"
                                             : " without leaving the job: it died or was killed"),
      rank};
  later(setup_.context, loss_delay, [weak = weak_from_this(), rank, error] {
    if (const auto self = weak.lock()) self->tell_loss(rank, error);
  });
}

// It is told too, for the day that it goes on.
void Hub::silent(Rank rank) {
  Member& member = members_[rank];
  const Error error{ErrorCode::peer_lost, silence_text(rank, member.join.person, heartbeat_.patience()),
                    rank};
  member.channel->send(finding_message(rank, error));
  member.channel->finish();
  member.gone = true;
  tell_loss(rank, error);
}

void Hub::tell_loss(Rank rank, const Error& error) {
  if (phase_ == Phase::closed) return;
  if (phase_ == Phase::gathering) {
    members_[rank].told = true;
    return give_up(error);
  }
  if (std::exchange(failure_told_, true)) return;
  const Message message = finding_message(rank, error);
  tell_others(message);
  tell_owner(message);
}

void Hub::tell_others(const Message& message) {
  for (Rank rank = 1; rank < setup_.world; ++rank)
    if (rank != message.from && members_[rank].channel && !members_[rank].gone)
      members_[rank].channel->send(message);
}

void Hub::tell_owner(const Message& message) {
  if (const auto owner = owner_.lock()) owner->deliver(message);
}

}  // namespace rondo::bootstrap
