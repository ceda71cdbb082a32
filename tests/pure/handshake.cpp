#include "bootstrap/handshake.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace rondo;
using namespace rondo::bootstrap;

namespace {

const Claim claim{42, 3, 1};

template <size_t N>
std::span<const std::byte, N> whole(const Bytes& bytes) {
  REQUIRE(bytes.size() == N);
  return std::span<const std::byte, N>(bytes.data(), N);
}

bool says(const Error& error, std::string_view text) {
  CAPTURE(error.message);
  return error.message.find(text) != std::string::npos;
}

// The Proof of a dialler for this acceptor.
Result<Bytes> proof_for(DiallingSide& dialler, AcceptingSide& acceptor) {
  const Reply reply = acceptor.hello(whole<hello_bytes>(dialler.hello()));
  REQUIRE_FALSE(reply.refused.has_value());
  return dialler.proof(whole<hello_bytes>(reply.send));
}

}  // namespace

TEST_CASE("handshake: two sides with one secret prove it to each other") {
  for (const char* secret : {"secret", ""}) {
    DiallingSide dialler({secret}, Purpose::data, claim);
    AcceptingSide acceptor({secret}, Purpose::data);
    const auto proof = proof_for(dialler, acceptor);
    REQUIRE(proof.ok());
    const auto proven = acceptor.check(whole<proof_bytes>(*proof));
    REQUIRE(proven.ok());
    CHECK(*proven == claim);
    CHECK(dialler.finish(whole<answer_bytes>(acceptor.answer(Verdict::welcome))).ok());
  }
}

TEST_CASE("handshake: a wrong secret is refused and both sides can say so") {
  DiallingSide dialler({"one"}, Purpose::control, claim);
  AcceptingSide acceptor({"two"}, Purpose::control);
  const auto proof = proof_for(dialler, acceptor);
  const auto proven = acceptor.check(whole<proof_bytes>(*proof));
  REQUIRE_FALSE(proven.ok());
  CHECK(proven.error().code == ErrorCode::refused);
  const auto end = dialler.finish(whole<answer_bytes>(acceptor.answer(Verdict::wrong_secret)));
  REQUIRE_FALSE(end.ok());
  CHECK(end.error().code == ErrorCode::refused);
  CHECK(says(end.error(), "the secrets differ"));

  AcceptingSide open({""}, Purpose::control);
  DiallingSide other({"one"}, Purpose::control, claim);
  CHECK(says(open.check(whole<proof_bytes>(*proof_for(other, open))).error(), "this side has no secret"));
}

TEST_CASE("handshake: an acceptor that only pretends to know the secret is found out") {
  DiallingSide dialler({"one"}, Purpose::control, claim);
  AcceptingSide impostor({"two"}, Purpose::control);
  REQUIRE(proof_for(dialler, impostor).ok());
  const auto end = dialler.finish(whole<answer_bytes>(impostor.answer(Verdict::welcome)));
  REQUIRE_FALSE(end.ok());
  CHECK(end.error().code == ErrorCode::refused);
  CHECK(says(end.error(), "did not prove"));
}

TEST_CASE("handshake: another version or byte order is refused on both sides, naming both") {
  const Credentials mine{"s"};
  Credentials newer{"s", 9, native_order(), "9.9"}, swapped{"s", protocol_version, ByteOrder::big, "0.1.0"};
  for (const Credentials& theirs : {newer, swapped}) {
    DiallingSide dialler(mine, Purpose::control, claim);
    AcceptingSide acceptor(theirs, Purpose::control);
    const Reply reply = acceptor.hello(whole<hello_bytes>(dialler.hello()));
    REQUIRE(reply.refused.has_value());
    CHECK(reply.refused->code == ErrorCode::refused);
    const auto proof = dialler.proof(whole<hello_bytes>(reply.send));
    REQUIRE_FALSE(proof.ok());
    CHECK(proof.error().code == ErrorCode::refused);
    CHECK(says(proof.error(), "other side speaks protocol " + std::to_string(theirs.version)));
    CHECK(says(proof.error(), "this side protocol " + std::to_string(mine.version)));
    CHECK(says(*reply.refused, "this side protocol " + std::to_string(theirs.version)));
  }
  DiallingSide dialler(mine, Purpose::control, claim);
  AcceptingSide acceptor(newer, Purpose::control);
  CHECK(says(acceptor.hello(whole<hello_bytes>(dialler.hello())).refused.value(), "build 9.9"));
}

TEST_CASE("handshake: TLS on one side only is refused on both, naming both") {
  const Credentials without{.secret = "s"}, with{.secret = "s", .tls = true};
  for (const bool dialler_has : {false, true}) {
    DiallingSide dialler(dialler_has ? with : without, Purpose::data, claim);
    AcceptingSide acceptor(dialler_has ? without : with, Purpose::data);
    const Reply reply = acceptor.hello(whole<hello_bytes>(dialler.hello()));
    REQUIRE(reply.refused.has_value());
    const auto proof = dialler.proof(whole<hello_bytes>(reply.send));
    REQUIRE_FALSE(proof.ok());
    for (const Error& error : {*reply.refused, proof.error()}) {
      CHECK(error.code == ErrorCode::refused);
      CHECK(says(error, "RONDO_TLS=1"));
      CHECK(says(error, "RONDO_TLS=0"));
    }
    CHECK(says(proof.error(), dialler_has ? "this side uses TLS" : "the other side uses TLS"));
  }
}

TEST_CASE("handshake: both sides come to one session key, another for every connection and claim") {
  const Credentials both{.secret = "secret", .tls = true};
  std::set<tls::Key> keys;
  for (const Claim& each : {claim, claim, Claim{42, 3, 2}}) {
    DiallingSide dialler(both, Purpose::data, each);
    AcceptingSide acceptor(both, Purpose::data);
    REQUIRE(acceptor.check(whole<proof_bytes>(*proof_for(dialler, acceptor))).ok());
    REQUIRE(dialler.session_key().has_value());
    CHECK(dialler.session_key() == acceptor.session_key());
    keys.insert(*dialler.session_key());
  }
  CHECK(keys.size() == 3);
  DiallingSide plain({"secret"}, Purpose::data, claim);
  CHECK_FALSE(plain.session_key().has_value());
}

TEST_CASE("handshake: replayed, reflected and altered proofs do not pass") {
  const Credentials both{"secret"};
  DiallingSide dialler(both, Purpose::data, claim);
  AcceptingSide acceptor(both, Purpose::data);
  const Bytes proof = *proof_for(dialler, acceptor);

  // Replay: the same Hello and Proof against a new acceptor, whose nonce is new.
  AcceptingSide second(both, Purpose::data);
  second.hello(whole<hello_bytes>(dialler.hello()));
  CHECK_FALSE(second.check(whole<proof_bytes>(proof)).ok());

  // Another claim under the same proof.
  for (size_t i = 0; i < proof.size(); ++i) {
    Bytes altered = proof;
    altered[i] ^= std::byte(1);
    CHECK_FALSE(acceptor.check(whole<proof_bytes>(altered)).ok());
  }

  // Reflection: the dialler gets its own Hello, or its own proof as the answer.
  DiallingSide victim(both, Purpose::data, claim);
  const auto reflected = victim.proof(whole<hello_bytes>(victim.hello()));
  REQUIRE_FALSE(reflected.ok());
  CHECK(reflected.error().code == ErrorCode::peer_lost);
  Answer echo{Verdict::welcome, decode_proof(whole<proof_bytes>(proof))->mac};
  CHECK_FALSE(dialler.finish(whole<answer_bytes>(encode(echo))).ok());

  CHECK(acceptor.check(whole<proof_bytes>(proof)).ok());
}

TEST_CASE("handshake: strangers and connections for something else are retried, not refused") {
  DiallingSide dialler({"s"}, Purpose::control, claim);
  AcceptingSide data({"s"}, Purpose::data), control({"s"}, Purpose::control);
  const Bytes garbage(hello_bytes, std::byte('x'));
  CHECK(dialler.proof(whole<hello_bytes>(garbage)).error().code == ErrorCode::peer_lost);
  const Reply reply = control.hello(whole<hello_bytes>(garbage));
  CHECK(reply.send.empty());
  CHECK(reply.refused->code == ErrorCode::peer_lost);
  CHECK(data.hello(whole<hello_bytes>(dialler.hello())).refused.has_value());
  REQUIRE(proof_for(dialler, control).ok());
  CHECK(dialler.finish(whole<answer_bytes>(control.answer(Verdict::unknown_tag))).error().code ==
        ErrorCode::peer_lost);
}
