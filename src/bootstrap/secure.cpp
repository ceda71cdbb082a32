#include "bootstrap/secure.hpp"

namespace rondo::bootstrap {
namespace {

using Done = std::function<void(const std::optional<std::string>&)>;

void go_on(Socket& socket, Done done) {
  Socket::wait_type what = Socket::wait_read;
  switch (socket.tls->handshake()) {
    case tls::Session::Step::done:
      return done(std::nullopt);
    case tls::Session::Step::failed:
      return done("the TLS handshake failed: " + socket.tls->failure());
    case tls::Session::Step::wants_read:
      break;
    case tls::Session::Step::wants_write:
      what = Socket::wait_write;
      break;
  }
  socket.async_wait(what, [&socket, done = std::move(done)](const asio::error_code& error) {
    if (!error && socket.is_open()) go_on(socket, done);
  });
}

}  // namespace

void secure(Socket& socket, tls::Side side, const tls::Key& key, Done done) {
  auto session = tls::Session::make(socket.native_handle(), side, key);
  if (!session) return done(session.error().message);
  socket.tls = std::move(*session);
  go_on(socket, std::move(done));
}

}  // namespace rondo::bootstrap
