#include "bootstrap/door.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/read.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "bootstrap/secure.hpp"

namespace rondo::bootstrap {
namespace {

constexpr size_t most_logged = 8;
// Of what a stranger sends no more is read.
static_assert(hello_bytes + proof_bytes <= 512);
constexpr milliseconds pause_without_descriptors{50};

}  // namespace

struct Door::Listener {
  Listener(asio::io_context& context, Descriptor fd) : descriptor(context), pause(context) {
    asio::error_code error;
    descriptor.assign(fd.get(), error);
    if (!error) fd.release();
  }
  asio::posix::stream_descriptor descriptor;
  asio::steady_timer pause;
};

// One unproven connection. It is in the door's list as long as its socket is open.
class Door::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::weak_ptr<Door> door, Door& owner, Descriptor fd)
      : door_(std::move(door)),
        address_(remote_address(fd.get())),
        socket_(adopt(owner.context_, std::move(fd), address_)),
        timer_(owner.context_, owner.limits_.patience),
        side_(owner.credentials_, owner.purpose_) {}

  const Address& address() const noexcept { return address_; }
  bool open() const noexcept { return socket_.is_open(); }

  void start() {
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->give_up({ErrorCode::peer_lost, "it stayed silent"});
    });
    read(hello_, &Session::greet);
  }

  void close() noexcept {
    timer_.cancel();
    asio::error_code ignored;
    socket_.close(ignored);
  }

 private:
  template <size_t N>
  void read(std::array<std::byte, N>& into, void (Session::*next)(Door&)) {
    asio::async_read(socket_, asio::buffer(into),
                     [self = shared_from_this(), next](const asio::error_code& error, size_t) {
                       const auto door = self->door_.lock();
                       if (!door || !self->socket_.is_open()) return;
                       if (error) return self->give_up({ErrorCode::peer_lost, "it closed the connection"});
                       (self.get()->*next)(*door);
                     });
  }

  void greet(Door&) {
    const Reply reply = side_.hello(hello_);
    const bool sent = reply.send.empty() || send_now(socket_, reply.send);
    if (reply.refused) return give_up(*reply.refused);
    if (!sent) return give_up({ErrorCode::peer_lost, "it closed the connection"});
    read(proof_, &Session::judge);
  }

  void judge(Door& door) {
    const auto claim = side_.check(proof_);
    const Verdict verdict = claim ? door.owner_.admit(*claim) : Verdict::wrong_secret;
    const bool sent = send_now(socket_, side_.answer(verdict));
    if (!claim) return give_up(claim.error());
    if (verdict != Verdict::welcome) return give_up({ErrorCode::peer_lost, "it looks for another job"});
    if (!sent) return give_up({ErrorCode::peer_lost, "it closed the connection"});
    const auto key = is_tcp(address_) ? side_.session_key() : std::nullopt;
    if (!key) return enter(door, *claim);
    door.keep(shared_from_this());
    secure(socket_, tls::Side::acceptor, *key, [self = shared_from_this(), claim = *claim](const auto& why) {
      const auto owner = self->door_.lock();
      if (!owner || !self->socket_.is_open()) return;
      if (why) return self->give_up({ErrorCode::peer_lost, *why});
      self->enter(*owner, claim);
    });
  }

  void enter(Door& door, const Claim& claim) {
    timer_.cancel();
    Socket socket = std::move(socket_);
    const auto self = shared_from_this();
    door.drop(*this);
    const auto entered = door.owner_.entered;  // a copy: it may close the door
    entered(claim, std::move(socket));
  }

  void give_up(const Error& error) {
    if (const auto door = door_.lock()) door->turned_away(*this, error);
  }

  const std::weak_ptr<Door> door_;
  const Address address_;
  Socket socket_;
  asio::steady_timer timer_;
  AcceptingSide side_;
  std::array<std::byte, hello_bytes> hello_;
  std::array<std::byte, proof_bytes> proof_;
};

Door::Door(asio::io_context& context, const Credentials& credentials, Purpose purpose, const Limits& limits,
           Rank rank)
    : context_(context), credentials_(credentials), purpose_(purpose), limits_(limits), rank_(rank) {}

void Door::open(std::vector<Descriptor> listeners, Owner owner) {
  owner_ = std::move(owner);
  for (Descriptor& fd : listeners) {
    listeners_.push_back(std::make_shared<Listener>(context_, std::move(fd)));
    watch(listeners_.back());
  }
}

void Door::close() noexcept {
  for (const auto& listener : listeners_) {
    asio::error_code ignored;
    listener->descriptor.close(ignored);
    listener->pause.cancel();
  }
  listeners_.clear();
  for (auto* list : {&sessions_, &proven_}) {
    for (const auto& session : *list) session->close();
    list->clear();
  }
}

void Door::watch(const std::shared_ptr<Listener>& listener) {
  listener->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                  [weak = weak_from_this(), listener](const asio::error_code& error) {
                                    const auto door = weak.lock();
                                    if (!error && door && listener->descriptor.is_open())
                                      door->accept(listener);
                                  });
}

// One connection per turn of the event loop, so that a flood and the handshakes of real ranks take turns.
void Door::accept(const std::shared_ptr<Listener>& listener) {
  Descriptor fd = accept_from(listener->descriptor.native_handle());
  const int cause = fd ? 0 : errno;
  const bool no_descriptor = cause == EMFILE || cause == ENFILE;
  const bool again = std::exchange(short_of_descriptors_, no_descriptor);
  if (no_descriptor || cause == ENOBUFS || cause == ENOMEM) {
    // After the first pause real ranks have proven themselves, and only strangers are still here.
    if (!no_descriptor || again) {
      if (!sessions_.empty())
        drop(*sessions_.front());
      else if (const auto exhausted = owner_.exhausted; exhausted && no_descriptor)
        exhausted(cause);
    }
    if (!listener->descriptor.is_open()) return;
    // The listener stays readable: without a pause this would be a busy loop.
    listener->pause.expires_after(pause_without_descriptors);
    listener->pause.async_wait([weak = weak_from_this(), listener](const asio::error_code& error) {
      const auto door = weak.lock();
      if (!error && door && listener->descriptor.is_open()) door->watch(listener);
    });
    return;
  }
  // The name of a Unix socket is no secret: without one, and to shared memory, only this user's own processes
  // may come in.
  const bool same_user_only = credentials_.secret.empty() || purpose_ == Purpose::memory;
  if (fd && same_user_only && !same_user(fd.get())) {
    log::line(log::Level::warn, int(rank_), "closed a connection of another user: {}",
              credentials_.secret.empty() ? "there is no secret" : "memory is shared within one user");
  } else if (fd) {
    if (sessions_.size() >= limits_.waiting) drop(*sessions_.front());
    const auto session = std::make_shared<Session>(weak_from_this(), *this, std::move(fd));
    if (session->open()) {
      sessions_.push_back(session);
      session->start();
    }
  }
  watch(listener);
}

void Door::drop(Session& session) noexcept {
  session.close();
  for (auto* list : {&sessions_, &proven_})
    list->remove_if([&](const auto& other) { return other.get() == &session; });
}

void Door::keep(const std::shared_ptr<Session>& session) {
  proven_.push_back(session);
  sessions_.remove(session);
}

void Door::turned_away(Session& session, const Error& error) {
  const std::string where = to_text(session.address());
  if (error.code == ErrorCode::refused) {
    ++refused_;
    if (logged_.size() < most_logged && logged_.insert(error.message).second)
      log::line(log::Level::warn, int(rank_), "refused a connection from {}: {}", where, error.message);
  } else {
    log::line(log::Level::debug, int(rank_), "closed an unproven connection from {}: {}", where,
              error.message);
  }
  drop(session);
}

}  // namespace rondo::bootstrap
