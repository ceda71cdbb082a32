#include "bootstrap/dial.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <asio/post.hpp>
#include <asio/read.hpp>
#include <cerrno>
#include <cstring>

#include "bootstrap/secure.hpp"

namespace rondo::bootstrap {

Dial::Dial(asio::io_context& context, const Address& address, const Credentials& credentials, Purpose purpose,
           const Claim& claim, Done done)
    : context_(context),
      socket_(context),
      timer_(context),
      address_(address),
      same_user_only_(credentials.secret.empty() || purpose == Purpose::memory),
      side_(credentials, purpose, claim),
      done_(std::move(done)) {}

std::shared_ptr<Dial> Dial::start(asio::io_context& context, const Address& address,
                                  const Credentials& credentials, Purpose purpose, const Claim& claim,
                                  TimePoint deadline, Done done) {
  std::shared_ptr<Dial> dial(new Dial(context, address, credentials, purpose, claim, std::move(done)));
  dial->timer_.expires_at(deadline);
  dial->timer_.async_wait([dial](const asio::error_code& error) {
    if (!error) dial->finish(Failure{{ErrorCode::peer_lost, "no answer"}, false, true});
  });
  asio::post(context, [dial] { dial->connect(); });
  return dial;
}

void Dial::cancel() noexcept {
  done_ = nullptr;
  timer_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
}

// By hand rather than through asio: a Unix socket whose backlog is full says EAGAIN, which is not "in
// progress".
void Dial::connect() {
  if (!done_) return;
  auto descriptor = make_socket(address_);
  if (!descriptor) return finish(Failure{descriptor.error(), false});
  const int fd = descriptor->get();
  socket_ = adopt(context_, std::move(*descriptor), address_);
  if (!socket_.is_open()) return fail("cannot watch the socket", ENOSPC);
  const int result = ::connect(fd, address_.data(), socklen_t(address_.size()));
  if (result == 0) return connected(0);
  if (errno != EINPROGRESS) return connected(errno);
  socket_.async_wait(Socket::wait_write, [self = shared_from_this(), fd](const asio::error_code& aborted) {
    if (aborted || !self->done_) return;
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    self->connected(error);
  });
}

void Dial::connected(int error) {
  if (error != 0) return fail({}, error);
  // A port in the ephemeral range that nobody listens on may be given to this very socket, which then
  // connects to itself and would keep the real listener out.
  if (is_tcp(address_) && local_address(socket_.native_handle()) == remote_address(socket_.native_handle()))
    return fail({}, ECONNREFUSED);
  if (same_user_only_ && !same_user(socket_.native_handle()))
    return finish(
        Failure{{ErrorCode::refused,
                 "the other end belongs to another user, and there is no secret, or memory is to be "
                 "shared"},
                false});
  if (!send_now(socket_, side_.hello())) return fail("the connection broke", errno);
  read(hello_, &Dial::prove);
}

template <size_t N>
void Dial::read(std::array<std::byte, N>& into, void (Dial::*next)()) {
  asio::async_read(socket_, asio::buffer(into),
                   [self = shared_from_this(), next](const asio::error_code& error, size_t) {
                     if (!self->done_) return;
                     if (error) return self->fail("the connection was closed during the handshake", 0);
                     (self.get()->*next)();
                   });
}

void Dial::prove() {
  const auto proof = side_.proof(hello_);
  if (!proof) return finish(Failure{proof.error(), false});
  if (!send_now(socket_, *proof)) return fail("the connection broke", errno);
  read(answer_, &Dial::conclude);
}

void Dial::conclude() {
  if (const auto proven = side_.finish(answer_); !proven) return finish(Failure{proven.error(), false});
  const auto key = is_tcp(address_) ? side_.session_key() : std::nullopt;
  if (!key) return finish(std::nullopt);
  secure(socket_, tls::Side::dialler, *key, [self = shared_from_this()](const auto& why) {
    if (why) return self->fail(*why, 0);
    self->finish(std::nullopt);
  });
}

void Dial::fail(std::string_view what, int error) {
  std::string text(what);
  if (error != 0) text += fmt::format("{}{}", text.empty() ? "" : ": ", std::strerror(error));
  finish(Failure{{ErrorCode::peer_lost, std::move(text)}, error == ECONNREFUSED});
}

void Dial::finish(std::optional<Failure> failure) {
  if (!done_) return;
  const Done done = std::exchange(done_, nullptr);
  timer_.cancel();
  if (failure) {
    asio::error_code ignored;
    socket_.close(ignored);
  }
  done(std::move(socket_), std::move(failure));
}

}  // namespace rondo::bootstrap
