#include "transport/shm/bell.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/limits.hpp"

namespace rondo::shm {
namespace {

constexpr char prefix[] = "rondo-bell-";

}  // namespace

Result<std::unique_ptr<Bell>> Bell::make() {
  BellName name;
  Descriptor listening = listen_at_random(prefix, name), ringing = datagram_socket();
  const int cause = errno;
  if (!listening || !ringing)
    return Error{ErrorCode::system, fmt::format("cannot make the bell of shared memory: {}{}",
                                                std::strerror(cause), limit_behind(cause))};
  return std::unique_ptr<Bell>(new Bell(name, std::move(listening), std::move(ringing)));
}

void Bell::silence() noexcept {
  char scrap;
  while (::recv(listening_.get(), &scrap, sizeof scrap, 0) >= 0) {
  }
}

void Bell::ring(const BellName& other) const noexcept {
  sockaddr_un address;
  const socklen_t size = socket_address(prefix, other, address);
  const char one = 1;
  [[maybe_unused]] const auto sent = ::sendto(ringing_.get(), &one, sizeof one, MSG_NOSIGNAL,
                                              reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace rondo::shm
