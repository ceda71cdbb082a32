// Non-blocking reads and writes on a stream socket, with the errors that mean "not now" told apart from the
// rest.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <span>

namespace rondo {

struct Moved {
  size_t bytes = 0;
  int error = 0;       // errno, when the connection has failed
  bool ended = false;  // the peer closed in order
};

inline bool is_transient(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

inline Moved write_some(int fd, std::span<iovec> parts) noexcept {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0) return {.bytes = size_t(n)};
  return {.error = is_transient(errno) ? 0 : errno};
}

inline Moved read_some(int fd, std::span<iovec> parts) noexcept {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t n = ::recvmsg(fd, &message, MSG_DONTWAIT);
  if (n > 0) return {.bytes = size_t(n)};
  if (n == 0) return {.ended = true};
  return {.error = is_transient(errno) ? 0 : errno};
}

}  // namespace rondo
