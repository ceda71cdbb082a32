// Datagrams between ranks of this machine that carry a descriptor: how a region reaches the ranks that it is
// lent to (lending.hpp). A full queue refuses; nobody waits.
#pragma once
#include <optional>
#include <span>

#include "base/descriptor.hpp"
#include "transport/shm/area.hpp"

namespace rondo::shm {

/// Where letters arrive: an abstract Unix socket with a random name. Any process may send there, so what a
/// letter says has to be proven.
struct Mailbox {
  PostName name;
  Descriptor descriptor;
  /// Errors: system.
  static Result<Mailbox> make();
};

/// What was in a mailbox.
struct Letter {
  size_t bytes;  // what did not fit into the memory for it is gone
  Descriptor memory;
};
/// Nothing: it is empty.
std::optional<Letter> take_letter(int mailbox, std::span<std::byte> into) noexcept;

/// Sends letters. Any thread.
class Sender {
 public:
  /// Errors: system.
  static Result<Sender> make();
  /// False: it did not go out. `memory` -1: without one.
  bool send(const PostName& to, std::span<const std::byte> letter, int memory = -1) const noexcept;

 private:
  explicit Sender(Descriptor socket) : socket_(std::move(socket)) {}
  Descriptor socket_;
};

}  // namespace rondo::shm
