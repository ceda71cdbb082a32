#include "transport/shm/post.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/limits.hpp"
#include "base/passing.hpp"

namespace rondo::shm {
namespace {

constexpr char prefix[] = "rondo-post-";

Error cannot_make() {
  const int cause = errno;
  return {ErrorCode::system, fmt::format("cannot make the post of shared memory: {}{}", std::strerror(cause),
                                         limit_behind(cause))};
}

}  // namespace

Result<Mailbox> Mailbox::make() {
  Mailbox box;
  box.descriptor = listen_at_random(prefix, box.name);
  if (!box.descriptor) return cannot_make();
  return box;
}

std::optional<Letter> take_letter(int mailbox, std::span<std::byte> into) noexcept {
  auto received = receive_message(mailbox, into);
  if (received.bytes < 0) return std::nullopt;
  return Letter{size_t(received.bytes), std::move(received.descriptor)};
}

Result<Sender> Sender::make() {
  Descriptor socket = datagram_socket();
  if (!socket) return cannot_make();
  return Sender(std::move(socket));
}

bool Sender::send(const PostName& to, std::span<const std::byte> letter, int memory) const noexcept {
  sockaddr_un address;
  const socklen_t bytes = socket_address(prefix, to, address);
  return send_message(socket_.get(), letter, memory, {reinterpret_cast<const sockaddr*>(&address), bytes});
}

}  // namespace rondo::shm
