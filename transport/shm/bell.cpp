#include "transport/shm/bell.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace rondo::shm {
namespace {

// "rondo-bell-" and the name in hexadecimal digits, without a file.
socklen_t address_of(const BellName& name, sockaddr_un& address) noexcept {
  constexpr char digits[] = "0123456789abcdef", prefix[] = "rondo-bell-";
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

}  // namespace

Result<std::unique_ptr<Bell>> Bell::make() {
  constexpr int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  BellName name;
  Descriptor listening(::socket(AF_UNIX, type, 0)), ringing(::socket(AF_UNIX, type, 0));
  sockaddr_un address;
  if (!listening || !ringing || ::getrandom(name.data(), name.size(), 0) != ssize_t(name.size()) ||
      ::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), address_of(name, address)) != 0)
    return Error{ErrorCode::system,
                 fmt::format("cannot make the bell of shared memory: {}", std::strerror(errno))};
  return std::unique_ptr<Bell>(new Bell(name, std::move(listening), std::move(ringing)));
}

void Bell::silence() noexcept {
  char scrap;
  while (::recv(listening_.get(), &scrap, sizeof scrap, 0) >= 0) {
  }
}

void Bell::ring(const BellName& other) const noexcept {
  sockaddr_un address;
  const socklen_t size = address_of(other, address);
  const char one = 1;
  [[maybe_unused]] const auto sent = ::sendto(ringing_.get(), &one, sizeof one, MSG_NOSIGNAL,
                                              reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace rondo::shm
