// Datagrams between ranks of one machine: abstract Unix sockets with random names, of which nothing is in a
// file system.
#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>

#include "base/descriptor.hpp"
#include "base/random.hpp"

namespace rondo::shm {

using RandomName = std::array<std::byte, 16>;

/// The prefix, then the name in hexadecimal digits.
inline socklen_t socket_address(const char* prefix, const RandomName& name, sockaddr_un& address) noexcept {
  constexpr char digits[] = "0123456789abcdef";
  address = {};
  address.sun_family = AF_UNIX;
  char* out = address.sun_path + 1;
  for (const char* c = prefix; *c != 0; ++c) *out++ = *c;
  for (const std::byte byte : name) {
    *out++ = digits[unsigned(byte) >> 4];
    *out++ = digits[unsigned(byte) & 15];
  }
  return socklen_t(offsetof(sockaddr_un, sun_path) + size_t(out - address.sun_path));
}

/// Non-blocking. None: errno says why.
inline Descriptor datagram_socket() noexcept {
  return Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// One that takes what is sent to a new `name`. None: errno says why.
inline Descriptor listen_at_random(const char* prefix, RandomName& name) noexcept {
  fill_random(name);
  Descriptor socket = datagram_socket();
  sockaddr_un address;
  const socklen_t size = socket_address(prefix, name, address);
  if (socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return Descriptor();
  return socket;
}

}  // namespace rondo::shm
