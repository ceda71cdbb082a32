// Abstract Unix sockets with random names: nothing of them is in a file system.
#pragma once
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>

namespace rondo::shm {

using RandomName = std::array<std::byte, 16>;

inline bool make_random(RandomName& name) noexcept {
  return ::getrandom(name.data(), name.size(), 0) == ssize_t(name.size());
}

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

}  // namespace rondo::shm
