#include "base/passing.hpp"

#include <cstring>

namespace rondo {
namespace {

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

bool send_message(int socket, std::span<const std::byte> data, int descriptor,
                  const Destination& to) noexcept {
  Envelope envelope(const_cast<std::byte*>(data.data()), data.size());
  envelope.message.msg_name = const_cast<sockaddr*>(to.address);
  envelope.message.msg_namelen = to.bytes;
  if (descriptor < 0) {
    envelope.message.msg_control = nullptr;
    envelope.message.msg_controllen = 0;
  } else {
    cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(socket, &envelope.message, MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(data.size());
}

Received receive_message(int socket, std::span<std::byte> into) noexcept {
  Envelope envelope(into.data(), into.size());
  Received received{::recvmsg(socket, &envelope.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), {}};
  const cmsghdr* header = received.bytes < 0 ? nullptr : CMSG_FIRSTHDR(&envelope.message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    received.descriptor = Descriptor(fd);
  }
  return received;
}

}  // namespace rondo
