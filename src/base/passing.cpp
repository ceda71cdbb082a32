#include "base/passing.hpp"

#include <cstring>

namespace rondo {
namespace {

// Room for one descriptor. Alignment makes it room for two on some machines; the kernel closes what is more.
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

// Any process may send to a rank's mailbox, as many descriptors as it likes: each that the kernel has opened
// here is either returned or closed.
Received receive_message(int socket, std::span<std::byte> into) noexcept {
  Envelope envelope(into.data(), into.size());
  Received received{::recvmsg(socket, &envelope.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), {}};
  if (received.bytes < 0) return received;
  size_t came = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&envelope.message); header != nullptr;
       header = CMSG_NXTHDR(&envelope.message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i, ++came) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      received.descriptor = Descriptor(fd);  // closes the one before
    }
  }
  const bool cut = (envelope.message.msg_flags & MSG_CTRUNC) != 0;
  if (came > 1 || cut) received.descriptor = Descriptor();  // no rank sends several
  return received;
}

}  // namespace rondo
