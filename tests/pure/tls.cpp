// A TLS session over a socket pair: what goes in comes out, in pieces of every size, and nothing else does.
#include "base/tls.hpp"

#include <doctest/doctest.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"

using namespace rondo;
using tls::Session;

namespace {

const tls::Key good = tls::derive_key("secret", std::as_bytes(std::span("salt")), {});

struct Ends {
  Ends() {
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    one = Descriptor(pair[0]);
    other = Descriptor(pair[1]);
  }
  Descriptor one, other;
  std::unique_ptr<Session> dialler, acceptor;
  Session::Step dialled = Session::Step::wants_read, accepted = Session::Step::wants_read;

  void shake(const tls::Key& left, const tls::Key& right, uint64_t records = tls::records_per_key) {
    dialler = std::move(*Session::make(one.get(), tls::Side::dialler, left, records));
    acceptor = std::move(*Session::make(other.get(), tls::Side::acceptor, right, records));
    for (int i = 0; i < 10; ++i) {
      if (dialled != Session::Step::failed) dialled = dialler->handshake();
      if (accepted != Session::Step::failed) accepted = acceptor->handshake();
    }
  }
};

std::vector<std::byte> numbered(size_t count) {
  std::vector<std::byte> data(count);
  for (size_t i = 0; i < count; ++i) data[i] = std::byte((i * 2654435761u) >> 11);
  return data;
}

Moved write(Session& session, std::span<const std::byte> data) {
  const iovec part{const_cast<std::byte*>(data.data()), data.size()};
  return session.write(std::span(&part, 1));
}
Moved read(Session& session, std::span<std::byte> data) {
  const iovec part{data.data(), data.size()};
  return session.read(std::span(&part, 1));
}

// All of `data` from one to the other, in calls of these sizes; whether it came out the same.
bool carries(Session& from, Session& to, const std::vector<std::byte>& data, size_t write_size,
             size_t read_size) {
  std::vector<std::byte> got(data.size());
  size_t sent = 0, taken = 0;
  for (int idle = 0; (taken < data.size() || from.unsent()) && idle < 1000; ++idle) {
    const Moved out = write(from, std::span(data).subspan(sent, std::min(write_size, data.size() - sent)));
    const Moved in = read(to, std::span(got).subspan(taken, std::min(read_size, data.size() - taken)));
    if (out.error != 0 || in.error != 0) return false;
    sent += out.bytes;
    taken += in.bytes;
    if (out.bytes + in.bytes > 0) idle = 0;
  }
  return sent == data.size() && taken == data.size() && got == data;
}

std::string hex(std::span<const std::byte> data) {
  std::string text;
  for (const std::byte byte : data) {
    text += "0123456789abcdef"[int(byte) >> 4];
    text += "0123456789abcdef"[int(byte) & 15];
  }
  return text;
}

}  // namespace

TEST_CASE("tls: the key is RFC 5869's HKDF-SHA256") {
  // Its test case 1, the first 32 bytes.
  const std::string secret(22, '\x0b');
  std::vector<std::byte> salt, info;
  for (int i = 0; i <= 0x0c; ++i) salt.push_back(std::byte(i));
  for (int i = 0xf0; i <= 0xf9; ++i) info.push_back(std::byte(i));
  CHECK(hex(tls::derive_key(secret, salt, info)) ==
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
  CHECK(tls::derive_key("secret", {}, {}) != tls::derive_key("secret", {}, info));
}

TEST_CASE("tls: bytes arrive as they were, whatever the sizes of records, writes and reads") {
  Ends ends;
  ends.shake(good, good);
  REQUIRE(ends.dialled == Session::Step::done);
  REQUIRE(ends.accepted == Session::Step::done);
  for (const size_t count : {1, 16383, 16384, 16385, 65535, 65536, 65537, 300'000})
    for (const size_t write_size : {7000, 16384, 16385, 65536, 200'000})
      for (const size_t read_size : {5000, 16384, 70'000, 300'000}) {
        CAPTURE(count);
        CAPTURE(write_size);
        CAPTURE(read_size);
        CHECK(carries(*ends.dialler, *ends.acceptor, numbered(count), write_size, read_size));
        CHECK(carries(*ends.acceptor, *ends.dialler, numbered(count), write_size, read_size));
      }
}

TEST_CASE("tls: a read that gives less than asked for has left nothing behind in the session") {
  Ends ends;
  ends.shake(good, good);
  const auto data = numbered(3 * 16384);
  for (int i = 0; i < 48; ++i)
    CHECK(write(*ends.dialler, std::span(data).subspan(size_t(i) * 1024, 1024)).bytes == 1024);
  std::vector<std::byte> got(data.size() + 1);
  CHECK(read(*ends.acceptor, got).bytes == data.size());
  got.pop_back();
  CHECK(got == data);
}

TEST_CASE("tls: several parts are one stream, and nothing is taken while sealed bytes wait") {
  Ends ends;
  ends.shake(good, good);
  const auto data = numbered(100'000);
  std::array<iovec, 3> parts{iovec{const_cast<std::byte*>(data.data()), 16}, iovec{nullptr, 0},
                             iovec{const_cast<std::byte*>(data.data()) + 16, data.size() - 16}};
  const size_t taken = ends.dialler->write(parts).bytes;
  CHECK(taken == 64 << 10);
  size_t more = 0;
  for (int i = 0; i < 100 && !ends.dialler->unsent(); ++i) more += write(*ends.dialler, data).bytes;
  REQUIRE(ends.dialler->unsent());
  CHECK(write(*ends.dialler, data).bytes == 0);
  std::vector<std::byte> got(taken);
  CHECK(read(*ends.acceptor, got).bytes == taken);
  CHECK(std::equal(got.begin(), got.end(), data.begin()));
  for (size_t rest = more; rest > 0;) {
    const size_t count = read(*ends.acceptor, std::span(got).first(std::min(rest, got.size()))).bytes;
    REQUIRE((count > 0 || ends.dialler->unsent()));
    rest -= count;
    write(*ends.dialler, {});
  }
  CHECK_FALSE(ends.dialler->unsent());
}

TEST_CASE("tls: keys change as often as they must, on both sides") {
  Ends ends;
  ends.shake(good, good, 3);
  for (int i = 0; i < 100; ++i) {
    REQUIRE(carries(*ends.dialler, *ends.acceptor, numbered(50'000), 50'000, 50'000));
    REQUIRE(carries(*ends.acceptor, *ends.dialler, numbered(100), 10, 100));
  }
}

TEST_CASE("tls: another key ends the handshake on both sides") {
  Ends ends;
  ends.shake(good, tls::derive_key("another", {}, {}));
  CHECK(ends.dialled == Session::Step::failed);
  CHECK(ends.accepted == Session::Step::failed);
  CHECK_FALSE(ends.acceptor->failure().empty());
}

TEST_CASE("tls: one altered byte is an error, before it and for ever after") {
  for (const size_t at : {0, 3, 7, 500, 1000}) {
    CAPTURE(at);
    Ends ends;
    ends.shake(good, good);
    const auto data = numbered(1000);
    CHECK(write(*ends.dialler, data).bytes == 1000);
    std::vector<std::byte> sealed(4000), got(1000);
    const ssize_t count = ::recv(ends.other.get(), sealed.data(), sealed.size(), 0);
    REQUIRE(count == 1022);
    const auto text = std::span(sealed).first(1022);
    CHECK(std::search(text.begin(), text.end(), data.begin(), data.begin() + 16) == text.end());
    sealed[at] ^= std::byte(1);
    REQUIRE(::send(ends.one.get(), sealed.data(), size_t(count), 0) == count);
    CHECK(read(*ends.acceptor, got).error == tls::altered_bytes);
    CHECK(read(*ends.acceptor, got).error == tls::altered_bytes);
  }
}

TEST_CASE("tls: the end of a connection is one, after what was sent before; a write to nobody is an error") {
  Ends ends;
  ends.shake(good, good);
  const auto data = numbered(100);
  CHECK(write(*ends.dialler, data).bytes == 100);
  ends.dialler = nullptr;
  ends.one = Descriptor();
  std::vector<std::byte> got(200);
  CHECK(read(*ends.acceptor, got).bytes == 100);
  CHECK(read(*ends.acceptor, got).ended);
  CHECK(read(*ends.acceptor, got).ended);
  CHECK(write(*ends.acceptor, data).error == EPIPE);  // and no SIGPIPE
}

TEST_CASE("tls: errors of the program's own use of OpenSSL are not taken for the session's") {
  Ends ends;
  ends.shake(good, good);
  const auto data = numbered(100);
  std::vector<std::byte> got(100);
  ERR_raise(ERR_LIB_USER, 1);
  CHECK(read(*ends.acceptor, got).error == 0);
  ERR_raise(ERR_LIB_USER, 1);
  CHECK(write(*ends.dialler, data).bytes == 100);
  ERR_raise(ERR_LIB_USER, 1);
  CHECK(read(*ends.acceptor, got).bytes == 100);
}
