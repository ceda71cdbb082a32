// TLS between two ranks, and somebody on the way between them.
#include "base/tls.hpp"

#include "descriptors.hpp"

using namespace rondo;
using fuzz::require;
using tls::Session;

namespace {

constexpr tls::Key key{std::byte(1), std::byte(2)};

struct End {
  explicit End(tls::Side side) : End(side, fuzz::stream_pair()) {}
  Descriptor socket, way;  // what is sent at one comes out at the other
  std::unique_ptr<Session> session;

 private:
  End(tls::Side side, std::pair<Descriptor, Descriptor> pair)
      : socket(std::move(pair.first)), way(std::move(pair.second)) {
    auto made = Session::make(socket.get(), side, key);
    require(made.ok(), "a session");
    session = std::move(*made);
  }
};

// Whoever does not know the key says what it likes.
void check_stranger(fuzz::Input& input) {
  End end(input.value<uint8_t>() & 1 ? tls::Side::dialler : tls::Side::acceptor);
  auto step = end.session->handshake();
  while (!input.empty() && step == Session::Step::wants_read) {
    const auto part = input.take(1 + input.value<uint16_t>() % 700);
    if (::send(end.way.get(), part.data(), part.size(), MSG_NOSIGNAL) < 0) break;
    step = end.session->handshake();
  }
  require(step != Session::Step::done, "nobody comes in without the key");
  require(step != Session::Step::failed || !end.session->failure().empty(), "a failure says why");
}

// Passes on what there is; true: with a byte changed.
bool pass_on(const Descriptor& from, const Descriptor& to, uint16_t change) {
  std::byte bytes[4096];
  const ssize_t count = ::recv(from.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count <= 0) return false;
  const bool changes = change >> 8 != 0;
  if (changes) bytes[change % size_t(count)] ^= std::byte(change >> 8);
  ::send(to.get(), bytes, size_t(count), MSG_NOSIGNAL);
  return changes;
}

// Two ranks meet and one writes to the other; the input says which transfer is changed, and how.
void check_changes(fuzz::Input& input) {
  End left(tls::Side::dialler), right(tls::Side::acceptor);
  bool changed = false, met = false;
  for (int round = 0; round < 4 && !met; ++round) {
    const auto one = left.session->handshake();
    changed |= pass_on(left.way, right.way, input.value<uint16_t>());
    const auto other = right.session->handshake();
    changed |= pass_on(right.way, left.way, input.value<uint16_t>());
    met = one == Session::Step::done && other == Session::Step::done;
    if (one == Session::Step::failed || other == Session::Step::failed) break;
  }
  // The version in the head of the first records means nothing, and is not covered by anything.
  require(met || changed, "they meet if nobody has changed a byte");
  if (!met) return;
  changed = false;
  const auto text = input.take(64);
  std::byte into[100];
  for (int i = 0; i < 8 && !changed; ++i) {
    iovec part{const_cast<std::byte*>(text.data()), text.size()};
    require(left.session->write(std::span(&part, 1)).bytes == text.size(), "the writer is not concerned");
    changed = pass_on(left.way, right.way, input.value<uint16_t>());
    iovec room{into, sizeof into};
    const Moved moved = right.session->read(std::span(&room, 1));
    const bool right_text =
        moved.bytes == text.size() && (text.empty() || std::memcmp(into, text.data(), text.size()) == 0);
    require(changed ? moved.bytes == 0 : right_text && moved.error == 0, "what is read is what was written");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  if (input.value<uint8_t>() & 1)
    check_stranger(input);
  else
    check_changes(input);
  return 0;
}
