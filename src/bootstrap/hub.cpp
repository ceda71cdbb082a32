#include "bootstrap/hub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "bootstrap/descriptors.hpp"
#include "bootstrap/person.hpp"
#include "bootstrap/resolver.hpp"
#include "bootstrap/root_file.hpp"

namespace rondo::bootstrap {
namespace {

// A root address may still be held by the job before this one.
constexpr milliseconds bind_patience{1000}, bind_pause{20};
// How long those that wait at the door are still told that the job has failed.
constexpr milliseconds turning_away{1000};

// What keeps rank 0 itself from taking part, for the others.
Error of_rank_0(const Error& error) {
  return {error.code, "rank 0 could not join: " + error.message, Rank(0)};
}

}  // namespace

std::shared_ptr<Star> make_hub(const StarSetup& setup, std::weak_ptr<StarOwner> owner) {
  return std::make_shared<Hub>(setup, std::move(owner));
}

Hub::Hub(const StarSetup& setup, std::weak_ptr<StarOwner> owner)
    : setup_(setup),
      owner_(std::move(owner)),
      deadline_timer_(setup.context),
      retry_timer_(setup.context),
      heartbeat_(setup.context, setup.world),
      members_(setup.world) {
  members_[0].join.person = setup.person;
  members_[0].join.timeout_ms = uint32_t(setup.timeout.count());
}

// ---- Opening the doors.

void Hub::start() {
  await_deadline();
  if (setup_.meeting.listener) {
    std::vector<Descriptor> listeners;
    listeners.push_back(std::move(*setup_.meeting.listener));
    return open(std::move(listeners), setup_.meeting.tag);
  }
  switch (setup_.root.kind) {
    case RootAddress::Kind::abstract_unix:
      return listen_at({unix_address(setup_.root.name)}, Clock::now() + bind_patience);
    case RootAddress::Kind::file:
      return listen_for_file();
    case RootAddress::Kind::tcp:
      break;
  }
  if (const auto& own = setup_.listen; !own.ip.empty()) {
    const Address address = tcp_address(asio::ip::make_address(own.ip), own.port);
    if (const auto error = needs_secret(setup_, address)) return fail(*error);
    return listen_at({address}, Clock::now() + bind_patience);
  }
  const auto service = setup_.service.lock();
  if (!service) return;
  resolve(service, setup_.root.name, setup_.root.port,
          [weak = weak_from_this()](const Result<std::vector<Address>>& resolved) {
            const auto self = weak.lock();
            if (!self || self->phase_ != Phase::gathering) return;
            if (!resolved) return self->fail(resolved.error());
            self->listen_by_name(*resolved);
          });
}

// A numeric address is taken literally. A name often means 127.0.1.1 on its own machine, and something else
// on the others: with a secret, listen everywhere; without one, only on what is loopback.
void Hub::listen_by_name(const std::vector<Address>& resolved) {
  const TimePoint give_up = Clock::now() + bind_patience;
  std::vector<Address> local;
  std::copy_if(resolved.begin(), resolved.end(), std::back_inserter(local), is_local);
  const bool literal = is_numeric(setup_.root.name), no_secret = setup_.credentials.secret.empty();
  if (literal || (no_secret && local.empty())) {
    if (auto error = needs_secret(setup_, resolved.front())) return fail(*error);
    return listen_at({resolved.front()}, give_up);
  }
  if (no_secret || setup_.root.name == "localhost")
    return listen_at(local.empty() ? resolved : local, give_up);
  // The IPv6 wildcard takes IPv4 connections too; the second is for machines without IPv6.
  const auto any = tcp_address(asio::ip::address_v6::any(), setup_.root.port);
  if (make_socket(any)) return listen_at({any}, give_up);
  listen_at({tcp_address(asio::ip::address_v4::any(), setup_.root.port)}, give_up);
}

void Hub::listen_at(std::vector<Address> addresses, TimePoint give_up) {
  std::vector<Descriptor> listeners;
  std::optional<Error> first_error;
  bool busy = false;
  for (const Address& address : addresses) {
    int cause = 0;
    auto listener = listen_on(address, &cause);
    busy = busy || cause == EADDRINUSE;
    if (listener)
      listeners.push_back(std::move(*listener));
    else if (!first_error)
      first_error = listener.error();
  }
  if (busy && Clock::now() < std::min(give_up, setup_.deadline)) {
    retry_timer_.expires_after(bind_pause);
    retry_timer_.async_wait([weak = weak_from_this(), addresses, give_up](const asio::error_code& error) {
      const auto self = weak.lock();
      if (!error && self && self->phase_ == Phase::gathering) self->listen_at(addresses, give_up);
    });
    return;
  }
  if (busy || listeners.empty()) return fail(*first_error);
  open(std::move(listeners), 0);
}

void Hub::listen_for_file() {
  auto listener = listen_on_loopback();
  if (!listener) return fail(listener.error());
  const uint64_t nonce = random_number() | 1;
  if (auto done = publish(setup_.root.name, {local_address(listener->get()), nonce}); !done)
    return fail(done.error());
  file_nonce_ = nonce;
  std::vector<Descriptor> listeners;
  listeners.push_back(std::move(*listener));
  open(std::move(listeners), nonce);
}

void Hub::open(std::vector<Descriptor> listeners, uint64_t tag) {
  door_ = std::make_shared<Door>(setup_.context, setup_.credentials, Purpose::control, setup_.limits, 0);
  const auto entered = [weak = weak_from_this()](const Claim& claim, Socket socket) {
    if (const auto self = weak.lock()) self->entered(claim, std::move(socket));
  };
  const auto admit = [tag](const Claim& claim) {
    return claim.tag == tag ? Verdict::welcome : Verdict::unknown_tag;
  };
  const auto exhausted = [weak = weak_from_this()](int error) {
    if (const auto self = weak.lock()) self->exhausted(error);
  };
  door_->open(std::move(listeners), {admit, entered, exhausted});
  if (setup_.excuse) give_up(of_rank_0(*setup_.excuse));
}

// ---- Gathering.

void Hub::entered(const Claim& claim, Socket socket) {
  if (phase_ != Phase::gathering) return;
  const auto channel = std::make_shared<Channel>(std::move(socket), longest_small_body);
  arriving_.push_back(channel);
  const Rank rank = claim.rank;
  const std::weak_ptr<Hub> hub = weak_from_this();
  const std::weak_ptr<Channel> weak = channel;
  channel->start(
      [hub, weak, rank](const Message& message) {
        const auto self = hub.lock();
        const auto from = weak.lock();
        if (!self || !from) return;
        if (self->phase_ == Phase::gathering &&
            !(rank < self->members_.size() && self->members_[rank].channel == from))
          return self->first_message(from, rank, message);
        self->received(rank, message);
      },
      [hub, weak, rank](const std::string& why) {
        const auto self = hub.lock();
        if (!self) return;
        std::erase(self->arriving_, weak.lock());
        if (rank < self->members_.size() && self->members_[rank].channel == weak.lock())
          self->lost(rank, why);
      });
}

void Hub::first_message(const std::shared_ptr<Channel>& channel, Rank rank, const Message& message) {
  if (!cause_) welcome(channel, rank, message);
  if (!cause_) return;
  turn_away(*channel, rank);
  std::erase(arriving_, channel);
  if (all_told()) fail(*cause_);
}

void Hub::welcome(const std::shared_ptr<Channel>& channel, Rank rank, const Message& message) {
  if (message.kind == Kind::join)
    if (const auto join = decode_join(message.body)) return admit(channel, rank, *join);
  if (message.kind == Kind::failed)
    if (const auto failure = decode_failure(message.body))
      return give_up({failure->code, fmt::format("rank {} could not join: {}", rank, failure->text), rank});
  log::line(log::Level::warn, 0, "rank {} sent a malformed first message", rank);
  std::erase(arriving_, channel);
  channel->finish();
}

void Hub::admit(const std::shared_ptr<Channel>& channel, Rank rank, const Join& join) {
  const Person& other = join.person;
  if (join.world != setup_.world)
    return give_up({ErrorCode::invalid_argument,
                    fmt::format("world sizes differ: {} was started as one of {} ranks, {} as one of {}",
                                describe(rank, other), join.world, describe(0, setup_.person), setup_.world),
                    rank});
  if (rank == 0 || rank >= setup_.world || members_[rank].channel) {
    const Person& first = rank < setup_.world ? members_[rank].join.person : setup_.person;
    return give_up({ErrorCode::invalid_argument,
                    fmt::format("two processes claim rank {}: pid {} on {} and pid {} on {}", rank,
                                first.process.pid, first.host, other.process.pid, other.host),
                    rank});
  }
  std::erase(arriving_, channel);
  members_[rank] = {channel, join, false};
  ++joined_;
  log::line(log::Level::debug, 0, "{} joined, {} of {}", describe(rank, other), joined_, setup_.world);
  if (joined_ == setup_.world) return complete();
  if (const auto its_deadline = Clock::now() + milliseconds(join.remaining_ms);
      its_deadline < setup_.deadline) {
    setup_.deadline = its_deadline;
    hurried_by_ = rank;
    await_deadline();
  }
}

void Hub::await_deadline() {
  deadline_timer_.expires_at(setup_.deadline);
  deadline_timer_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->phase_ == Phase::gathering) self->out_of_time();
  });
}

void Hub::out_of_time() {
  if (cause_) return fail(*cause_);
  std::vector<Rank> missing;
  for (Rank rank = 1; rank < setup_.world; ++rank)
    if (!members_[rank].channel) missing.push_back(rank);
  std::string text = fmt::format("{} did not join within {}", list_of(missing, setup_.world),
                                 in_seconds(members_[hurried_by_].join.timeout_ms));
  if (hurried_by_ != 0) text += fmt::format(" (the init timeout of rank {})", hurried_by_);
  text += fmt::format("; rank 0 waited at {}", to_string(setup_.root));
  if (door_ && door_->refused() > 0)
    text += fmt::format("; {} connection(s) were refused for a wrong secret or version, or for RONDO_TLS",
                        door_->refused());
  fail({ErrorCode::timeout, text, missing.front()});
}

void Hub::exhausted(int error) {
  give_up({ErrorCode::system,
           fmt::format("rank 0 has run out of file descriptors: {} of {} ranks had joined ({}; {} ranks need "
                       "about {})",
                       joined_, setup_.world, descriptor_limit(error), setup_.world,
                       descriptors_of_root(setup_.world)),
           Rank(0)});
}

// Those that have joined are told and make room for those that come yet: they are told at the door.
void Hub::give_up(const Error& error) {
  if (phase_ != Phase::gathering || cause_) return;
  cause_ = error;
  for (Rank rank = 1; rank < setup_.world; ++rank)
    if (members_[rank].channel) turn_away(*members_[rank].channel, rank);
  if (all_told()) return fail(error);
  setup_.deadline = std::min(setup_.deadline, Clock::now() + turning_away);
  await_deadline();
}

void Hub::turn_away(Channel& channel, Rank rank) {
  channel.send(failure_message(0, *cause_));
  channel.finish();
  if (rank < setup_.world) members_[rank].told = true;
}

bool Hub::all_told() const {
  return std::ranges::all_of(members_.begin() + 1, members_.end(), [](const Member& m) { return m.told; });
}

// A rank that listens on loopback cannot be found by ranks of other machines: they find only themselves. It
// happens when the root's name means 127.0.1.1 on its own machine and that has no other address that serves.
std::optional<Error> Hub::unreachable() const {
  const auto local = [](const Member& member) { return is_local(from_wire(member.join.listener, 0)); };
  const auto members = std::span(members_).subspan(1);
  const auto near = std::find_if(members.begin(), members.end(), local);
  const auto far = std::find_if_not(members.begin(), members.end(), local);
  if (near == members.end() || far == members.end()) return std::nullopt;
  const auto rank_of = [&](auto member) { return Rank(member - members.begin() + 1); };
  return Error{
      ErrorCode::invalid_argument,
      fmt::format(
          "{} listens on a loopback address, {} on the network, so they cannot reach each other: the root {} "
          "must mean the same network address on every machine, or RONDO_INTERFACE name the network",
          describe(rank_of(near), near->join.person), describe(rank_of(far), far->join.person),
          to_string(setup_.root))};
}

// The address of this rank at which the others have found it: one that other machines can reach, where there is one.
std::optional<asio::ip::address> Hub::way_to_the_others() const {
  std::optional<asio::ip::address> way;
  for (const Member& member : std::span(members_).subspan(1)) {
    const Address mine = local_address(member.channel->socket().native_handle());
    if (is_tcp(mine) && (!way || way->is_loopback())) way = ip_of(mine);
  }
  return way;
}

// The doors close before anybody learns that the job is complete: the next job may use the same address at
// once.
void Hub::complete() {
  if (const auto error = unreachable()) return fail(*error);
  phase_ = Phase::running;
  deadline_timer_.cancel();
  door_->close();
  if (file_nonce_ != 0) withdraw(setup_.root.name, std::exchange(file_nonce_, 0));
  for (const auto& channel : arriving_) channel->finish();
  arriving_.clear();
  auto listener = open_data_listener(setup_, way_to_the_others());
  if (!listener) return fail(of_rank_0(listener.error()));
  members_[0].join.listener = to_wire(as_others_see(setup_, local_address(listener->socket.get())));
  Welcome welcome;
  welcome.epoch = random_number();
  welcome.transport = setup_.transport;
  welcome.policy = setup_.policy;
  welcome.remaining_ms = uint32_t(milliseconds_until(setup_.deadline));
  welcome.heartbeat_ms = uint32_t(setup_.heartbeat.count());
  for (const Member& member : members_) {
    welcome.persons.push_back(member.join.person);
    welcome.listeners.push_back(member.join.listener);
  }
  tell_others({Kind::welcome, 0, everyone, encode(welcome)});
  heartbeat_.start(setup_.heartbeat, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self) self->beat();
    return self;
  });
  if (const auto owner = owner_.lock()) owner->joined(std::move(welcome), std::move(*listener));
}

void Hub::fail(const Error& error) {
  const Message message = failure_message(0, error);
  for (const auto& channel : arriving_) channel->send(message);
  for (const auto& member : members_)
    if (member.channel) member.channel->send(message);
  close();
  if (const auto owner = owner_.lock()) owner->join_failed(error);
}

void Hub::close() noexcept {
  if (std::exchange(phase_, Phase::closed) == Phase::closed) return;
  deadline_timer_.cancel();
  retry_timer_.cancel();
  heartbeat_.stop();
  if (door_) door_->close();
  if (file_nonce_ != 0) withdraw(setup_.root.name, std::exchange(file_nonce_, 0));
  for (const auto& channel : arriving_) channel->finish();
  for (const auto& member : members_)
    if (member.channel) member.channel->finish();
}

}  // namespace rondo::bootstrap
