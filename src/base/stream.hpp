// A connected, non-blocking stream socket, and the TLS session that all its bytes go through, if there is one.
#pragma once
#include "base/descriptor.hpp"
#include "base/tls.hpp"

namespace rondo {

struct Stream {
  Stream(Descriptor fd, std::unique_ptr<tls::Session> session = nullptr) noexcept
      : descriptor(std::move(fd)), tls(std::move(session)) {}

  Moved write(std::span<iovec> parts) noexcept {
    return tls ? tls->write(parts) : write_some(descriptor.get(), parts);
  }
  Moved read(std::span<iovec> parts) noexcept {
    return tls ? tls->read(parts) : read_some(descriptor.get(), parts);
  }
  /// What write() has taken is not all with the kernel yet.
  bool unsent() const noexcept { return tls && tls->unsent(); }

  Descriptor descriptor;
  std::unique_ptr<tls::Session> tls;
};

}  // namespace rondo
