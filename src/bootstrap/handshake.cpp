#include "bootstrap/handshake.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cassert>
#include <new>

#include "base/random.hpp"

namespace rondo::bootstrap {
namespace {

constexpr std::string_view dialler_label = "rondo handshake: dialler",
                           acceptor_label = "rondo handshake: acceptor", session_label = "rondo session";

Mac sign(const Credentials& credentials, std::string_view label, const Bytes& dialler_hello,
         const Bytes& acceptor_hello, const Claim& claim) {
  const Bytes text =
      Writer().text(label, label.size()).raw(dialler_hello).raw(acceptor_hello).raw(encode(claim)).take();
  Mac mac;
  unsigned size = 0;
  // An empty secret still needs a non-null key: null would mean "the previous key".
  HMAC(EVP_sha256(), credentials.secret.c_str(), int(credentials.secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(mac.data()), &size);
  if (size != mac.size()) throw std::bad_alloc();  // nothing else can fail; a proof of zeros must never pass
  return mac;
}

bool same(const Mac& left, const Mac& right) {
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

Bytes make_hello(const Credentials& credentials, Purpose purpose) {
  Hello hello{credentials.version, credentials.order, purpose, !credentials.secret.empty(),
              credentials.tls,     credentials.build, {}};
  fill_random(hello.nonce);
  return encode(hello);
}

std::string_view name_of(ByteOrder order) { return order == ByteOrder::big ? "big-endian" : "little-endian"; }

// Whether the two sides can talk at all; the error names both.
std::optional<Error> incompatible(const Credentials& mine, const Hello& theirs) {
  if (theirs.version == mine.version && theirs.order == mine.order) {
    if (theirs.tls == mine.tls) return std::nullopt;
    const auto name = [](bool tls) {
      return tls ? "uses TLS (RONDO_TLS=1)" : "does not use TLS (RONDO_TLS=0)";
    };
    return Error{ErrorCode::refused,
                 fmt::format("the other side {}, this side {}: set RONDO_TLS alike on every rank",
                             name(theirs.tls), name(mine.tls))};
  }
  return Error{
      ErrorCode::refused,
      fmt::format("the other side speaks protocol {} ({}, build {}), this side protocol {} ({}, build {}): "
                  "all ranks must run the same version of Rondo on machines of the same byte order",
                  theirs.version, name_of(theirs.order), theirs.build.empty() ? "unknown" : theirs.build,
                  mine.version, name_of(mine.order), mine.build)};
}

// Fresh for every connection, and bound to what the handshake has proven.
std::optional<tls::Key> key_of(const Credentials& credentials, const Bytes& dialler_hello,
                               const Bytes& acceptor_hello, const Claim& claim) {
  if (!credentials.tls) return std::nullopt;
  const Bytes salt = Writer().raw(dialler_hello).raw(acceptor_hello).take();
  const Bytes info = Writer().raw(bytes_of(session_label)).raw(encode(claim)).take();
  return tls::derive_key(credentials.secret, salt, info);
}

std::string which_secrets(bool mine, bool theirs) {
  if (mine != theirs)
    return fmt::format("this side has {} secret, the other side has {}", mine ? "a" : "no",
                       theirs ? "one" : "none");
  return "the secrets differ";
}

}  // namespace

std::string_view build_version() noexcept { return RONDO_VERSION; }

DiallingSide::DiallingSide(const Credentials& credentials, Purpose purpose, const Claim& claim)
    : credentials_(credentials), purpose_(purpose), claim_(claim), hello_(make_hello(credentials, purpose)) {}

Result<Bytes> DiallingSide::proof(std::span<const std::byte, hello_bytes> their_hello) {
  const auto theirs = decode_hello(their_hello);
  if (!theirs) return Error{ErrorCode::peer_lost, "what answers there does not speak Rondo's protocol"};
  if (auto error = incompatible(credentials_, *theirs)) return *error;
  their_hello_.assign(their_hello.begin(), their_hello.end());
  if (their_hello_ == hello_)
    return Error{ErrorCode::peer_lost, "the connection leads back to this side itself"};
  if (theirs->purpose != purpose_)
    return Error{ErrorCode::peer_lost, "another listener of Rondo answers there"};
  return encode(Proof{claim_, sign(credentials_, dialler_label, hello_, their_hello_, claim_)});
}

Result<void> DiallingSide::finish(std::span<const std::byte, answer_bytes> data) const {
  const auto answer = decode_answer(data);
  if (!answer) return Error{ErrorCode::peer_lost, "the handshake was answered with unknown bytes"};
  const bool they_have_one = decode_hello(std::span(their_hello_).first<hello_bytes>())->has_secret;
  switch (answer->verdict) {
    case Verdict::welcome:
      break;
    case Verdict::wrong_secret:
      return Error{ErrorCode::refused, "this side's proof was refused: " +
                                           which_secrets(!credentials_.secret.empty(), they_have_one) +
                                           " (RONDO_SECRET must be the same on every rank)"};
    case Verdict::unknown_tag:
      return Error{ErrorCode::peer_lost, "another job, or another run of this job, answers there"};
  }
  if (!same(answer->mac, sign(credentials_, acceptor_label, hello_, their_hello_, claim_)))
    return Error{ErrorCode::refused, "the other side did not prove that it knows the secret"};
  return {};
}

std::optional<tls::Key> DiallingSide::session_key() const {
  return key_of(credentials_, hello_, their_hello_, claim_);
}

AcceptingSide::AcceptingSide(const Credentials& credentials, Purpose purpose)
    : credentials_(credentials), purpose_(purpose), hello_(make_hello(credentials, purpose)) {}

Reply AcceptingSide::hello(std::span<const std::byte, hello_bytes> their_hello) {
  const auto theirs = decode_hello(their_hello);
  if (!theirs) return {{}, Error{ErrorCode::peer_lost, "its first bytes are not Rondo's"}};
  // Another version still gets this side's Hello, so that both can say which versions met.
  if (auto error = incompatible(credentials_, *theirs)) return {hello_, error};
  if (theirs->purpose != purpose_) return {{}, Error{ErrorCode::peer_lost, "it came to the wrong listener"}};
  their_hello_.assign(their_hello.begin(), their_hello.end());
  return {hello_, std::nullopt};
}

Result<Claim> AcceptingSide::check(std::span<const std::byte, proof_bytes> data) {
  assert(!their_hello_.empty());
  const auto proof = decode_proof(data);
  if (!proof || !same(proof->mac, sign(credentials_, dialler_label, their_hello_, hello_, proof->claim))) {
    const bool they_have_one = decode_hello(std::span(their_hello_).first<hello_bytes>())->has_secret;
    return Error{ErrorCode::refused, "it did not prove the secret: " +
                                         which_secrets(!credentials_.secret.empty(), they_have_one)};
  }
  claim_ = proof->claim;
  return claim_;
}

std::optional<tls::Key> AcceptingSide::session_key() const {
  return key_of(credentials_, their_hello_, hello_, claim_);
}

Bytes AcceptingSide::answer(Verdict verdict) const {
  Answer answer{verdict, {}};
  if (verdict == Verdict::welcome)
    answer.mac = sign(credentials_, acceptor_label, their_hello_, hello_, claim_);
  return encode(answer);
}

}  // namespace rondo::bootstrap
