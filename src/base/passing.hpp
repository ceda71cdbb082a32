// A short message over a Unix socket, and at most one descriptor with it (unix(7), SCM_RIGHTS).
#pragma once
#include <sys/socket.h>

#include <cstddef>
#include <span>

#include "base/descriptor.hpp"

namespace rondo {

/// Where a datagram goes; empty: a connected socket's peer.
struct Destination {
  const sockaddr* address = nullptr;
  socklen_t bytes = 0;
};

/// `descriptor` -1: without one. False: not sent whole, errno says why; a full queue counts as that.
bool send_message(int socket, std::span<const std::byte> data, int descriptor,
                  const Destination& to = {}) noexcept;

struct Received {
  ssize_t bytes;          // as recvmsg returns them: -1, and errno says why; what did not fit is gone
  Descriptor descriptor;  // none also when several came: all of them are closed
};
Received receive_message(int socket, std::span<std::byte> into) noexcept;

}  // namespace rondo
