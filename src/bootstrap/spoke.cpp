#include "bootstrap/spoke.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "bootstrap/person.hpp"
#include "bootstrap/resolver.hpp"
#include "bootstrap/root_file.hpp"

namespace rondo::bootstrap {
namespace {

constexpr milliseconds retry_pause{20};
// How long an answer of the root to one attempt may take; it closes unproven connections after as long.
constexpr milliseconds attempt_patience{5000};
constexpr milliseconds name_lifetime{1000};
// The root, not this rank, says at the deadline who is missing.
constexpr milliseconds verdict_grace{400};

}  // namespace

std::shared_ptr<Star> make_spoke(const StarSetup& setup, std::weak_ptr<StarOwner> owner) {
  return std::make_shared<Spoke>(setup, std::move(owner));
}

Spoke::Spoke(const StarSetup& setup, std::weak_ptr<StarOwner> owner)
    : setup_(setup),
      owner_(std::move(owner)),
      deadline_timer_(setup.context),
      retry_timer_(setup.context),
      heartbeat_(setup.context, 1),
      tag_(setup.meeting.tag) {}

// ---- Finding rank 0.

void Spoke::start() {
  await(setup_.deadline, &Spoke::unanswered);
  look_up();
}

void Spoke::await(TimePoint deadline, void (Spoke::*then)()) {
  deadline_timer_.expires_at(deadline);
  deadline_timer_.async_wait([weak = weak_from_this(), then](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && (self->phase_ == Phase::seeking || self->phase_ == Phase::joining))
      (self.get()->*then)();
  });
}

void Spoke::look_up() {
  next_address_ = 0;
  switch (setup_.root.kind) {
    case RootAddress::Kind::abstract_unix:
      addresses_ = {unix_address(setup_.root.name)};
      return try_next();
    case RootAddress::Kind::file: {
      const auto record = look_at(setup_.root.name);
      if (!record) return try_again(record.error().message);
      addresses_ = {record->address};
      tag_ = record->nonce;
      return try_next();
    }
    case RootAddress::Kind::tcp:
      break;
  }
  if (!addresses_.empty() && Clock::now() < resolved_at_ + name_lifetime) return try_next();
  const auto service = setup_.service.lock();
  if (!service) return;
  resolve(service, setup_.root.name, setup_.root.port,
          [weak = weak_from_this()](const Result<std::vector<Address>>& resolved) {
            const auto self = weak.lock();
            if (!self || self->phase_ != Phase::seeking) return;
            if (!resolved) return self->try_again(resolved.error().message);
            self->addresses_ = *resolved;
            self->resolved_at_ = Clock::now();
            self->try_next();
          });
}

void Spoke::try_next() {
  if (next_address_ == addresses_.size()) return try_again(last_failure_);
  const Address& address = addresses_[next_address_++];
  if (auto error = needs_secret(setup_, address)) return fail(*error);
  dial_ = Dial::start(setup_.context, address, setup_.credentials, Purpose::control, {tag_, setup_.rank, 0},
                      std::min(setup_.deadline, Clock::now() + attempt_patience),
                      [weak = weak_from_this()](Socket socket, const std::optional<Dial::Failure>& failure) {
                        const auto self = weak.lock();
                        if (self && self->phase_ == Phase::seeking) self->dialled(std::move(socket), failure);
                      });
}

void Spoke::dialled(Socket socket, const std::optional<Dial::Failure>& failure) {
  if (!failure) return join(std::move(socket));
  const std::string where = to_text(addresses_[next_address_ - 1]);
  if (failure->error.code == ErrorCode::refused)
    return fail({ErrorCode::refused,
                 fmt::format("rank {} (pid {} on {}) and rank 0 at {} do not fit together: {}", setup_.rank,
                             setup_.person.process.pid, setup_.person.host, where, failure->error.message),
                 Rank(0)});
  if (failure->error.code == ErrorCode::system)
    return fail({ErrorCode::system,
                 fmt::format("rank {} cannot connect to rank 0: {}", setup_.rank, failure->error.message)});
  last_failure_ = where + ": " + failure->error.message;
  try_next();
}

void Spoke::try_again(const std::string& why) {
  last_failure_ = why;
  retry_timer_.expires_after(retry_pause);
  retry_timer_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->phase_ == Phase::seeking) self->look_up();
  });
}

void Spoke::unanswered() {
  fail({ErrorCode::timeout,
        fmt::format("rank 0 did not answer at {} within {}; the last attempt of rank {} ended with: {}",
                    to_string(setup_.root), in_seconds(uint64_t(setup_.timeout.count())), setup_.rank,
                    last_failure_),
        Rank(0)});
}

// ---- Joining.

void Spoke::join(Socket socket) {
  phase_ = Phase::joining;
  const Address mine = local_address(socket.native_handle());
  auto listener = setup_.excuse
                      ? Result<DataListener>(*setup_.excuse)
                      : open_data_listener(setup_, is_tcp(mine) ? std::optional(ip_of(mine)) : std::nullopt);
  channel_ = std::make_shared<Channel>(std::move(socket), longest_welcome_body);
  channel_->start(
      [weak = weak_from_this()](const Message& message) {
        if (const auto self = weak.lock()) self->received(message);
      },
      [weak = weak_from_this()](const std::string& why) {
        if (const auto self = weak.lock()) self->lost(why);
      });
  if (!listener) {
    channel_->send(failure_message(setup_.rank, listener.error()));
    return fail(listener.error());
  }
  listener_ = std::move(*listener);
  const auto remaining = uint32_t(milliseconds_until(setup_.deadline));
  const Join join{setup_.world, uint32_t(setup_.timeout.count()), remaining, setup_.person,
                  to_wire(as_others_see(setup_, local_address(listener_.socket.get())))};
  channel_->send({Kind::join, setup_.rank, 0, encode(join)});
  await(setup_.deadline + verdict_grace, &Spoke::verdict_missing);
}

void Spoke::verdict_missing() {
  fail({ErrorCode::timeout,
        fmt::format("not all ranks joined within {}, and rank 0 at {} has stopped answering",
                    in_seconds(uint64_t(setup_.timeout.count())), to_string(setup_.root)),
        Rank(0)});
}

void Spoke::received(const Message& message) {
  if (phase_ == Phase::joining) {
    if (message.kind == Kind::welcome) return welcomed(message);
    const auto failure = message.kind == Kind::failed ? decode_failure(message.body) : std::nullopt;
    if (failure) return fail({failure->code, failure->text, failure->peer});
    return lost("sent a message out of turn");
  }
  if (phase_ != Phase::running) return;
  heartbeat_.heard(0);
  switch (message.kind) {
    case Kind::beat:
      return;
    case Kind::groups:
    case Kind::ask:
    case Kind::summary:
      if (message.from != 0) return lost("sent a message out of turn");
      break;
    case Kind::join:
    case Kind::welcome:
    case Kind::report:
    case Kind::ended:
    case Kind::regroup:
      return lost("sent a message out of turn");
    case Kind::failed:
    case Kind::leave:
    case Kind::dial:
    case Kind::shared:
      break;
  }
  if (message.kind == Kind::leave && message.from == 0) phase_ = Phase::alone;
  if (const auto owner = owner_.lock()) owner->deliver(message);
}

void Spoke::welcomed(const Message& message) {
  auto welcome = decode_welcome(message.body);
  if (!welcome || welcome->persons.size() != setup_.world) return lost("sent a malformed welcome");
  phase_ = Phase::running;
  deadline_timer_.cancel();
  root_ = welcome->persons[0];
  heartbeat_.start(milliseconds(welcome->heartbeat_ms), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self) self->beat();
    return self;
  });
  if (const auto owner = owner_.lock()) owner->joined(std::move(*welcome), std::move(listener_));
}

void Spoke::beat() {
  if (phase_ != Phase::running) return;
  if (heartbeat_.is_silent(0)) return silent();
  channel_->send({Kind::beat, setup_.rank, 0, {}});
}

void Spoke::silent() {
  phase_ = Phase::alone;
  const Error error{ErrorCode::peer_lost, silence_text(0, root_, heartbeat_.patience()), Rank(0)};
  if (const auto owner = owner_.lock()) owner->deliver(finding_message(0, error));
}

// A rank 0 that left in order has said so before it ended, which has been read by then.
void Spoke::ended(Rank rank) {
  if (rank != 0) return send({Kind::ended, setup_.rank, 0, encode_rank(rank)});
  later(setup_.context, loss_delay, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->lost("ended");
  });
}

void Spoke::lost(const std::string& why) {
  if (phase_ != Phase::joining && phase_ != Phase::running) return;
  const bool joining = std::exchange(phase_, Phase::alone) == Phase::joining;
  deadline_timer_.cancel();
  const Error error{
      ErrorCode::peer_lost,
      joining ? fmt::format("rank 0 at {} {} before all ranks had joined: it died or was killed",
                            to_string(setup_.root), why)
              : fmt::format("{} {} without leaving the job: it died or was killed", describe(0, root_), why),
      Rank(0)};
  later(setup_.context, loss_delay, [weak = weak_from_this(), joining, error] {
    const auto self = weak.lock();
    if (!self || self->phase_ != Phase::alone) return;
    if (joining) return self->fail(error);
    if (const auto owner = self->owner_.lock()) owner->deliver(finding_message(0, error));
  });
}

void Spoke::fail(const Error& error) {
  close();
  if (const auto owner = owner_.lock()) owner->join_failed(error);
}

void Spoke::send(const Message& message) {
  if (phase_ == Phase::running) channel_->send(message);
}

void Spoke::close() noexcept {
  if (std::exchange(phase_, Phase::closed) == Phase::closed) return;
  deadline_timer_.cancel();
  retry_timer_.cancel();
  heartbeat_.stop();
  if (dial_) dial_->cancel();
  if (channel_) channel_->finish();
}

}  // namespace rondo::bootstrap
