#include "bootstrap/exchange.hpp"

#include <fmt/format.h>

#include <asio/post.hpp>
#include <cerrno>

#include "base/limits.hpp"
#include "base/passing.hpp"
#include "bootstrap/person.hpp"
#include "bootstrap/star.hpp"

namespace rondo::bootstrap {
namespace {

// More at once would need more descriptors, and no rank waits for one in particular.
constexpr size_t most_dials = 4;
constexpr milliseconds dial_pause{20};
// Without descriptors and without progress: those of other connections do not come free any more.
constexpr milliseconds shortage_patience{500};

enum class Word : uint8_t { memory = 1, attached = 2, checked = 3, refused = 4 };

bool say(int socket, Word word, int descriptor = -1) noexcept {
  return send_message(socket, std::as_bytes(std::span(&word, 1)), descriptor);
}

// The next word and what came with it. Nothing: none is there yet, or (errno is 0) the peer has closed.
std::optional<std::pair<Word, Descriptor>> hear(int socket) noexcept {
  Word word{};
  errno = 0;
  auto received = receive_message(socket, std::as_writable_bytes(std::span(&word, 1)));
  if (received.bytes != ssize_t(sizeof word)) return std::nullopt;
  return std::pair(word, std::move(received.descriptor));
}

}  // namespace

Address door_address(const DoorName& name) {
  std::string text = "rondo-memory-";
  for (const std::byte byte : name) text += fmt::format("{:02x}", unsigned(byte));
  return unix_address(text);
}

// One proven connection.
class Exchange::Pair : public std::enable_shared_from_this<Pair> {
 public:
  Pair(std::weak_ptr<Exchange> exchange, Rank peer, Socket socket)
      : exchange_(std::move(exchange)), peer_(peer), socket_(std::move(socket)) {}

  void start(int memory) {
    if (memory < 0) {
      say(socket_.native_handle(), Word::refused);
      return finish(true, "it could not make its own memory");
    }
    if (!say(socket_.native_handle(), Word::memory, memory)) return finish(true, "the connection broke");
    wait();
  }
  void close() noexcept {
    asio::error_code ignored;
    socket_.close(ignored);
  }

 private:
  void wait() {
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const asio::error_code& error) {
      if (!error && self->socket_.is_open()) self->listen();
    });
  }

  void listen() {
    auto heard = hear(socket_.native_handle());
    if (!heard && errno == EAGAIN) return wait();
    if (!heard) return finish(true, "it closed the connection");
    if (heard->first == Word::refused) return finish(true, "it could not attach to this rank's memory");
    if (heard->first != expected_) return finish(false, "it spoke out of turn");
    step(std::move(heard->second));
  }

  void step(Descriptor memory) {
    const auto exchange = exchange_.lock();
    if (!exchange) return;
    const auto use = [&](Sharing& sharing) {
      switch (expected_) {
        case Word::memory:
          if (memory) return sharing.attach(peer_, std::move(memory));
          return Result<void>(Error{ErrorCode::system,
                                    "its descriptor did not arrive; is the limit of open "
                                    "descriptors (ulimit -n) too low?"});
        case Word::attached:
          return sharing.check(peer_);
        case Word::checked:
          return sharing.confirm(peer_);
        case Word::refused:
          break;
      }
      return Result<void>();
    };
    if (const auto outcome = exchange->owner_.with_sharing(use); !outcome) {
      say(socket_.native_handle(), Word::refused);
      return finish(false, outcome.error().message);
    }
    if (expected_ == Word::checked) return finish(false, {});
    expected_ = Word(uint8_t(expected_) + 1);
    if (!say(socket_.native_handle(), expected_)) return finish(true, "the connection broke");
    wait();
  }

  // No reason: all went well.
  void finish(bool consequence, const std::string& why) {
    close();
    const auto exchange = exchange_.lock();
    if (!exchange) return;
    exchange->settle(peer_, why.empty() ? Shared{} : exchange->failed(peer_, consequence, why));
  }

  const std::weak_ptr<Exchange> exchange_;
  const Rank peer_;
  Socket socket_;
  Word expected_ = Word::memory;
};

Exchange::Exchange(asio::io_context& context, const Credentials& credentials, const Limits& limits, Rank rank,
                   const Welcome& job)
    : context_(context),
      credentials_(credentials),
      limits_(limits),
      rank_(rank),
      job_(job),
      timer_(context),
      peers_(job.persons.size()),
      unsettled_(peers_.size() - 1),
      next_dial_(rank + 1) {}

void Exchange::start(Descriptor listener, TimePoint deadline, Owner owner) {
  owner_ = std::move(owner);
  deadline_ = deadline;
  timer_.expires_at(deadline);
  timer_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->closed_) self->out_of_time();
  });
  const auto begun = owner_.with_sharing([this](Sharing& sharing) -> Result<void> {
    const auto memory = sharing.begin(rank_, uint32_t(peers_.size()), job_.epoch);
    if (!memory) return memory.error();
    memory_ = *memory;
    return {};
  });
  open_door(std::move(listener));
  // From a handler, as all reports are.
  if (!begun)
    asio::post(context_, [weak = weak_from_this(), why = begun.error().message] {
      if (const auto self = weak.lock()) self->report(self->failed(self->rank_, false, why));
    });
  dial_next();
}

void Exchange::open_door(Descriptor listener) {
  door_ = std::make_shared<Door>(context_, credentials_, Purpose::memory, limits_, rank_);
  const std::weak_ptr<Exchange> weak = weak_from_this();
  const auto admit = [weak](const Claim& claim) {
    const auto self = weak.lock();
    const bool known = self && claim.tag == self->job_.epoch && claim.rank < self->rank_ &&
                       !self->peers_[claim.rank].pair && !self->peers_[claim.rank].settled;
    return known ? Verdict::welcome : Verdict::unknown_tag;
  };
  const auto entered = [weak](const Claim& claim, Socket socket) {
    if (const auto self = weak.lock()) self->meet(claim.rank, std::move(socket));
  };
  const auto exhausted = [weak](int error) {
    if (const auto self = weak.lock())
      self->short_of_descriptors("it has run out of file descriptors: " + descriptor_limit(error));
  };
  std::vector<Descriptor> listeners;
  listeners.push_back(std::move(listener));
  door_->open(std::move(listeners), {admit, entered, exhausted});
}

void Exchange::dial_next() {
  while (dialling_ < most_dials && next_dial_ < peers_.size()) {
    ++dialling_;
    dial(next_dial_++);
  }
}

void Exchange::dial(Rank peer) {
  peers_[peer].dial = Dial::start(
      context_, door_address(job_.persons[peer].door), credentials_, Purpose::memory, {job_.epoch, rank_, 0},
      deadline_, [weak = weak_from_this(), peer](Socket socket, const std::optional<Dial::Failure>& failure) {
        const auto self = weak.lock();
        if (self && !self->closed_) self->dialled(peer, std::move(socket), failure);
      });
}

// A dial that ended without an answer is made again: the peer may have been short of descriptors.
void Exchange::dialled(Rank peer, Socket socket, const std::optional<Dial::Failure>& failure) {
  if (!failure) return meet(peer, std::move(socket));
  const bool final = failure->nobody_listens || failure->error.code == ErrorCode::refused;
  if (final)
    return settle(peer,
                  failed(peer, false,
                         failure->error.message +
                             (failure->nobody_listens ? " (is it in another network namespace?)" : "")));
  if (failure->error.code == ErrorCode::system) short_of_descriptors(failure->error.message);
  later(context_, dial_pause, [weak = weak_from_this(), peer] {
    const auto self = weak.lock();
    if (self && !self->closed_ && !self->peers_[peer].settled) self->dial(peer);
  });
}

// Said again and again as long as it lasts.
void Exchange::short_of_descriptors(const std::string& why) {
  const TimePoint now = Clock::now();
  if (!short_since_) short_since_ = now;
  if (now - *short_since_ >= shortage_patience) report(failed(rank_, false, why));
}

void Exchange::meet(Rank peer, Socket socket) {
  if (closed_) return;
  peers_[peer].dial = nullptr;
  peers_[peer].pair = std::make_shared<Pair>(weak_from_this(), peer, std::move(socket));
  peers_[peer].pair->start(memory_);
}

Shared Exchange::failed(Rank peer, bool consequence, const std::string& why) const {
  const std::string self = describe(rank_, job_.persons[rank_]);
  if (peer == rank_) return {false, consequence, peer, fmt::format("{}: {}", self, why)};
  return {false, consequence, peer,
          fmt::format("{} and {}: {}", self, describe(peer, job_.persons[peer]), why)};
}

void Exchange::settle(Rank peer, const Shared& outcome) {
  if (closed_ || std::exchange(peers_[peer].settled, true)) return;
  --unsettled_;
  short_since_.reset();
  if (!outcome.ok && (!failure_ || (failure_->consequence && !outcome.consequence))) failure_ = outcome;
  if (!outcome.ok && !outcome.consequence) report(outcome);
  if (unsettled_ == 0) return report(failure_.value_or(Shared{}));
  if (peer > rank_ && !closed_) {
    --dialling_;
    dial_next();
  }
}

void Exchange::out_of_time() {
  for (Rank peer = 0; peer < peers_.size(); ++peer)
    if (peer != rank_ && !peers_[peer].settled)
      settle(peer, failed(peer, true, "the other did not answer in time"));
}

void Exchange::report(const Shared& outcome) {
  if (closed_ || std::exchange(reported_, true)) return;
  owner_.report(outcome);
}

void Exchange::close() noexcept {
  closed_ = true;
  timer_.cancel();
  if (door_) door_->close();
  for (Peer& peer : peers_) {
    if (peer.dial) peer.dial->cancel();
    if (peer.pair) peer.pair->close();
  }
}

}  // namespace rondo::bootstrap
