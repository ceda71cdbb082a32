// TLS 1.3 over a connected, non-blocking stream socket, between two sides that hold the same key already: no
// certificates, and a Diffie-Hellman exchange of fresh keys all the same.
//
//   write --> records --> [ sealed bytes ] --> send     a write is sealed whole; what the socket does not take waits
//   read  <-- records <-- [ read ahead ]   <-- recv     a read that gives less than asked for has found the socket empty
//
// Whoever waits for the descriptor edge-triggered is therefore woken as it is without TLS, if it waits only after a
// read that gave less than asked for, and after a write that left bytes unsent().
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/socket_io.hpp"
#include "rondo/result.hpp"

namespace rondo::tls {

using Key = std::array<std::byte, 32>;
/// HKDF with SHA-256 (RFC 5869).
Key derive_key(std::string_view secret, std::span<const std::byte> salt, std::span<const std::byte> info);

enum class Side : uint8_t { dialler, acceptor };

/// The key seals at most this many records before it is changed; AES-GCM allows 2^24.5 (RFC 8446, 5.5).
inline constexpr uint64_t records_per_key = 1u << 23;
/// Moved::error of bytes that the other side has not sealed, or not so.
inline constexpr int altered_bytes = EBADMSG;

/// One thread at a time. Neither owns the descriptor nor waits for it. No SIGPIPE comes of it. An end of the
/// connection without TLS's own goodbye counts as an end: whoever uses it says goodbye itself.
class Session {
 public:
  /// Errors: system.
  static Result<std::unique_ptr<Session>> make(int socket, Side side, const Key& key,
                                               uint64_t records = records_per_key);
  ~Session();
  Session(const Session&) = delete;

  enum class Step : uint8_t { done, wants_read, wants_write, failed };
  /// Goes on with the handshake as far as it goes now.
  Step handshake() noexcept;
  /// Why it failed.
  const std::string& failure() const noexcept { return failure_; }

  /// Takes what fits of `parts`; nothing while the socket does not take what was sealed before.
  Moved write(std::span<const iovec> parts) noexcept;
  /// Sealed bytes wait for the socket; write() tries them again, also without parts.
  bool unsent() const noexcept { return sent_ != sealed_; }
  /// Fills `parts` as far as bytes have arrived.
  Moved read(std::span<const iovec> parts) noexcept;

 private:
  struct Library;
  Session(int socket, uint64_t records);
  void flush(Moved& moved) noexcept;
  bool seal(const std::byte* data, size_t bytes) noexcept;
  Moved outcome(int result) const noexcept;

  const int socket_;
  const uint64_t records_per_key_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<std::byte[]> out_;  // sealed bytes, of which [sent_, sealed_) are still to be sent
  size_t sent_ = 0, sealed_ = 0;
  uint64_t records_ = 0;  // sealed with the present key
  Moved ending_;          // of reading
  std::string failure_;
};

}  // namespace rondo::tls
