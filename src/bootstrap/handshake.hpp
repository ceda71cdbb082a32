// Proof of the job's secret, both ways, before anything else is read from a connection.
//
//     dialler                                        acceptor
//     Hello {version, order, purpose, nonce d} --->
//                                              <---  Hello {version, order, purpose, nonce a}
//     Proof {claim, HMAC(secret, "dialler", both Hellos, claim)} --->
//         <---  Answer {welcome, HMAC(secret, "acceptor", both Hellos, claim)}
//
// Both nonces are fresh, so nothing can be replayed; the two labels differ, so nothing can be reflected; the
// claim (which rank, which job, which lane) is covered, so it cannot be exchanged. What follows on the
// connection is TLS where the job uses it and the connection is one of TCP, under a key that both sides derive from the
// secret, both Hellos and the claim. Otherwise it is neither encrypted nor signed: the network between the ranks is
// then trusted not to read or alter bytes under way.
//
// These classes only turn bytes into bytes; dial and door move them.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/tls.hpp"
#include "bootstrap/wire.hpp"

namespace rondo::bootstrap {

/// Rondo's own version.
std::string_view build_version() noexcept;

/// What a side says and knows about itself. Tests forge version, order and build.
struct Credentials {
  std::string secret;
  uint16_t version = protocol_version;
  ByteOrder order = native_order();
  std::string build = std::string(build_version());
  bool tls = false;  // Options::tls; both sides must say the same
};

/// Errors of both sides: `refused` is final (version, byte order, TLS or secret); `peer_lost` means that the other
/// side is not, or not yet, the one looked for, so a dialler may try again.
class DiallingSide {
 public:
  DiallingSide(const Credentials& credentials, Purpose purpose, const Claim& claim);
  const Bytes& hello() const noexcept { return hello_; }
  Result<Bytes> proof(std::span<const std::byte, hello_bytes> their_hello);
  Result<void> finish(std::span<const std::byte, answer_bytes> answer) const;
  /// After finish: the key of the connection's TLS session, if the job uses TLS.
  std::optional<tls::Key> session_key() const;

 private:
  const Credentials credentials_;
  const Purpose purpose_;
  const Claim claim_;
  Bytes hello_, their_hello_;
};

/// What to send next, and why the connection must be closed after that (nothing: go on).
struct Reply {
  Bytes send;
  std::optional<Error> refused;
};

class AcceptingSide {
 public:
  AcceptingSide(const Credentials& credentials, Purpose purpose);
  Reply hello(std::span<const std::byte, hello_bytes> their_hello);
  /// The claim once it is proven; the error when it is not, to be followed by answer(wrong_secret).
  Result<Claim> check(std::span<const std::byte, proof_bytes> proof);
  Bytes answer(Verdict verdict) const;
  /// After check: the key of the connection's TLS session, if the job uses TLS.
  std::optional<tls::Key> session_key() const;

 private:
  const Credentials credentials_;
  const Purpose purpose_;
  Claim claim_;
  Bytes hello_, their_hello_;
};

}  // namespace rondo::bootstrap
