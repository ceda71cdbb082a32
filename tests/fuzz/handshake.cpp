// What a stranger sends before it has proven anything, to either side of the handshake.
#include "bootstrap/handshake.hpp"

#include "input.hpp"

using namespace rondo;
using namespace rondo::bootstrap;
using fuzz::require;

namespace {

const Credentials credentials{"a secret that no input contains"};

void check_records(std::span<const std::byte> bytes) {
  if (bytes.size() >= hello_bytes)
    if (const auto hello = decode_hello(bytes.first<hello_bytes>())) {
      require(hello->build.size() <= 16, "a build is short");
      const auto encoded = encode(*hello);
      require(encoded.size() == hello_bytes, "a Hello has its size");
      require(*decode_hello(std::span(encoded).first<hello_bytes>()) == *hello, "Hello comes back");
    }
  if (bytes.size() >= proof_bytes)
    if (const auto proof = decode_proof(bytes.first<proof_bytes>()))
      require(std::ranges::equal(encode(*proof), bytes.first(proof_bytes)), "Proof comes back");
  if (bytes.size() >= answer_bytes)
    if (const auto answer = decode_answer(bytes.first<answer_bytes>())) {
      const auto again = encode(*answer);
      require(decode_answer(std::span(again).first<answer_bytes>())->mac == answer->mac, "Answer comes back");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  check_records(std::span(reinterpret_cast<const std::byte*>(data), size));
  std::array<std::byte, hello_bytes> hello;
  std::array<std::byte, proof_bytes> proof;
  std::array<std::byte, answer_bytes> answer;
  input.fill(hello);
  input.fill(proof);
  input.fill(answer);

  AcceptingSide acceptor(credentials, Purpose::control);
  if (!acceptor.hello(hello).refused) require(!acceptor.check(proof), "nobody is let in without the secret");
  DiallingSide dialler(credentials, Purpose::control, {1, 2, 3});
  if (dialler.proof(hello)) require(!dialler.finish(answer), "nobody is believed without the secret");
  return 0;
}
