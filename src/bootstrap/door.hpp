// Where proven connections come in: listeners, and the acceptor's side of handshake.hpp over each new socket.
//
// A stranger can send at most a Hello and a Proof (112 bytes), and has `patience` for it. At most `waiting`
// connections may be unproven at once; when one more comes, the oldest is closed. A real rank needs only a
// few milliseconds, so a flood must bring `waiting` connections within those to push it out, and then it
// tries again. One that has proven itself and still has its TLS handshake to do is no stranger any more.
#pragma once
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/socket.hpp"

namespace rondo::bootstrap {

/// Service thread. Whoever holds it closes it.
class Door : public std::enable_shared_from_this<Door> {
 public:
  struct Owner {
    std::function<Verdict(const Claim&)> admit;         // of a claim that is proven
    std::function<void(const Claim&, Socket)> entered;  // proven, admitted, answered
    // May be empty. There is no descriptor for one more connection, and no stranger holds one; tried again.
    std::function<void(int error)> exhausted = nullptr;
  };

  /// `rank` is for log lines.
  Door(asio::io_context& context, const Credentials& credentials, Purpose purpose, const Limits& limits,
       Rank rank);
  void open(std::vector<Descriptor> listeners, Owner owner);
  void close() noexcept;
  /// Connections turned away because of their secret, version or byte order.
  size_t refused() const noexcept { return refused_; }

 private:
  class Session;
  struct Listener;
  void watch(const std::shared_ptr<Listener>& listener);
  void accept(const std::shared_ptr<Listener>& listener);
  void drop(Session& session) noexcept;
  void keep(const std::shared_ptr<Session>& session);
  void turned_away(Session& session, const Error& error);

  asio::io_context& context_;
  const Credentials credentials_;
  const Purpose purpose_;
  const Limits limits_;
  const Rank rank_;
  Owner owner_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::list<std::shared_ptr<Session>> sessions_;  // unproven, oldest first
  std::list<std::shared_ptr<Session>> proven_;    // in their TLS handshake
  std::set<std::string> logged_;
  size_t refused_ = 0;
  bool short_of_descriptors_ = false;  // at the last attempt to accept
};

}  // namespace rondo::bootstrap
