// A control connection after its handshake: whole messages in, whole messages out.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <memory>

#include "bootstrap/socket.hpp"
#include "bootstrap/wire.hpp"

namespace rondo::bootstrap {

/// Service thread. Keeps itself alive while an operation is pending; after finish() it calls nobody.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  /// Messages with a longer body end the connection.
  Channel(Socket socket, size_t longest_body) : socket_(std::move(socket)), longest_body_(longest_body) {}

  void start(std::function<void(Message)> received, std::function<void(const std::string& why)> lost);
  void send(const Message& message);
  /// Sends what goes without blocking, then closes in order: what was sent still arrives.
  void finish() noexcept;
  Socket& socket() noexcept { return socket_; }

 private:
  void read(std::span<std::byte> into, void (Channel::*then)());
  void read_on();
  void read_head();
  void read_body();
  void deliver();
  void write();
  bool flush() noexcept;  // false: the socket is full
  void fail(const std::string& why);

  Socket socket_;
  const size_t longest_body_;
  std::function<void(Message)> received_;
  std::function<void(const std::string&)> lost_;
  std::span<std::byte> missing_;  // where the next bytes belong
  void (Channel::*then_)() = nullptr;
  std::array<std::byte, head_bytes> head_;
  Message incoming_;
  std::deque<Bytes> outgoing_;  // the front is being written
  size_t written_ = 0;          // of the front
  size_t queued_ = 0;           // bytes in outgoing_
  bool waiting_ = false;        // for room in the socket's buffer
};

}  // namespace rondo::bootstrap
