#include "base/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace rondo {

void fill_random(std::span<std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count > 0)
      bytes = bytes.subspan(size_t(count));
    else if (errno != EINTR)
      std::abort();  // without randomness there is no handshake worth having
  }
}

uint64_t random_number() noexcept {
  uint64_t number = 0;
  fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace rondo
