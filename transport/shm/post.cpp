#include "transport/shm/post.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace rondo::shm {
namespace {

constexpr char prefix[] = "rondo-post-";
constexpr int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

Error cannot_make() {
  return {ErrorCode::system, fmt::format("cannot make the post of shared memory: {}", std::strerror(errno))};
}

// Room for one descriptor; the kernel closes what is more.
struct Envelope {
  Envelope(void* data, size_t bytes) : part{data, bytes} {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
};

}  // namespace

Result<Mailbox> Mailbox::make() {
  Mailbox box{{}, Descriptor(::socket(AF_UNIX, type, 0))};
  sockaddr_un address;
  if (!box.descriptor || !make_random(box.name) ||
      ::bind(box.descriptor.get(), reinterpret_cast<const sockaddr*>(&address),
             socket_address(prefix, box.name, address)) != 0)
    return cannot_make();
  return box;
}

std::optional<Letter> take_letter(int mailbox, std::span<std::byte> into) noexcept {
  Envelope envelope(into.data(), into.size());
  const ssize_t bytes = ::recvmsg(mailbox, &envelope.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return std::nullopt;
  Letter letter{size_t(bytes), {}};
  const cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    letter.memory = Descriptor(fd);
  }
  return letter;
}

Result<Sender> Sender::make() {
  Descriptor socket(::socket(AF_UNIX, type, 0));
  if (!socket) return cannot_make();
  return Sender(std::move(socket));
}

bool Sender::send(const PostName& to, std::span<const std::byte> letter, int memory) const noexcept {
  sockaddr_un address;
  Envelope envelope(const_cast<std::byte*>(letter.data()), letter.size());
  envelope.message.msg_name = &address;
  envelope.message.msg_namelen = socket_address(prefix, to, address);
  if (memory < 0) {
    envelope.message.msg_control = nullptr;
    envelope.message.msg_controllen = 0;
  } else {
    cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof memory);
    std::memcpy(CMSG_DATA(header), &memory, sizeof memory);
  }
  return ::sendmsg(socket_.get(), &envelope.message, MSG_NOSIGNAL) == ssize_t(letter.size());
}

}  // namespace rondo::shm
