// Connects to an address and proves itself there: the dialler's side of handshake.hpp over a socket.
#pragma once
#include <array>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/socket.hpp"

namespace rondo::bootstrap {

/// One attempt. Service thread; keeps itself alive until it is done.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  struct Failure {
    Error error;          // refused: final; else another attempt may succeed
    bool nobody_listens;  // the address answered that there is no listener
    bool silent = false;  // nothing, or not all, came of it until the deadline
  };
  /// Called once, from a handler (never from within start), unless cancelled. The socket has no pending
  /// operation.
  using Done = std::function<void(Socket, std::optional<Failure>)>;

  static std::shared_ptr<Dial> start(asio::io_context& context, const Address& address,
                                     const Credentials& credentials, Purpose purpose, const Claim& claim,
                                     TimePoint deadline, Done done);
  /// `done` is not called any more.
  void cancel() noexcept;

 private:
  Dial(asio::io_context& context, const Address& address, const Credentials& credentials, Purpose purpose,
       const Claim& claim, Done done);
  void connect();
  void connected(int error);
  void read_hello();
  void read_answer();
  template <size_t N>
  void read(std::array<std::byte, N>& into, void (Dial::*next)());
  void prove();
  void conclude();
  void finish(std::optional<Failure> failure);
  void fail(std::string_view what, int error);

  asio::io_context& context_;
  Socket socket_;
  asio::steady_timer timer_;
  const Address address_;
  const bool same_user_only_;
  DiallingSide side_;
  std::array<std::byte, hello_bytes> hello_;
  std::array<std::byte, answer_bytes> answer_;
  Done done_;
};

}  // namespace rondo::bootstrap
