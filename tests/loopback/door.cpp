// What somebody who has not proven the secret may do at a door: how many bytes, how long, and how many at once.
#include "bootstrap/door.hpp"

#include <doctest/doctest.h>

#include <asio/post.hpp>
#include <future>

#include "fleet.hpp"

using namespace rondo;
using namespace rondo::bootstrap;
using namespace rondo::test;

namespace {

const Credentials good{"the secret of this test"};

// A door of its own, open as long as this lives. Nobody is let in.
class OpenDoor {
 public:
  OpenDoor(Result<Descriptor> listener, Purpose purpose, const Limits& limits) {
    REQUIRE(listener.ok());
    address = local_address(listener->get());
    on_service([&] {
      door_ = std::make_shared<Door>(service_->context(), good, purpose, limits, 0);
      std::vector<Descriptor> listeners;
      listeners.push_back(std::move(*listener));
      door_->open(std::move(listeners),
                  {[](const Claim&) { return Verdict::unknown_tag; }, [](const Claim&, auto&&...) {}});
    });
  }
  ~OpenDoor() {
    on_service([&] { door_->close(); });
  }

  Address address;

 private:
  void on_service(const std::function<void()>& call) {
    std::promise<void> done;
    asio::post(service_->context(), [&] {
      call();
      done.set_value();
    });
    done.get_future().wait();
  }
  const std::shared_ptr<Service> service_ = Service::instance();
  std::shared_ptr<Door> door_;
};

// At each kind of door that there is: for control and data over TCP, control over a Unix socket, memory.
void at_every_door(const Limits& limits, const std::function<void(const Address&, Purpose)>& visit) {
  const auto unix_listener = [] { return listen_on(unix_address(unix_root().substr(6))); };
  for (const Purpose purpose : {Purpose::control, Purpose::data, Purpose::memory})
    for (const bool tcp : {true, false}) {
      if (tcp == (purpose == Purpose::memory)) continue;
      CAPTURE(int(purpose));
      CAPTURE(tcp);
      const OpenDoor door(tcp ? listen_on_loopback() : unix_listener(), purpose, limits);
      visit(door.address, purpose);
    }
}

Bytes hello_for(Purpose purpose) {
  Hello hello;
  hello.purpose = purpose;
  hello.has_secret = true;
  return encode(hello);
}

// How a connection ends: in order, or with a reset, which says that bytes were left unread.
enum class End { still_open, in_order, reset };
End end_of(int socket, milliseconds patience) {
  const auto deadline = deadline_after(patience);
  do {
    std::byte scrap[256];
    const ssize_t count = ::recv(socket, scrap, sizeof scrap, MSG_DONTWAIT);
    if (count == 0) return End::in_order;
    if (count < 0 && errno == ECONNRESET) return End::reset;
    if (count < 0) std::this_thread::sleep_for(milliseconds(1));
  } while (Clock::now() < deadline);
  return End::still_open;
}

double seconds_since(TimePoint start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

TEST_CASE("door: the last byte of a wrong proof is answered, one more is never read") {
  static_assert(hello_bytes + proof_bytes == 112);  // as docs/security.md says
  at_every_door({milliseconds(5000), 8}, [](const Address& address, Purpose purpose) {
    Stranger exact(address), more(address);
    for (Stranger* stranger : {&exact, &more}) {
      REQUIRE(stranger->send(hello_for(purpose)) == hello_bytes);
      REQUIRE(stranger->receive(hello_bytes).size() == hello_bytes);
    }
    exact.send(Bytes(proof_bytes - 1));
    CHECK(end_of(exact.descriptor(), milliseconds(50)) == End::still_open);
    exact.send(Bytes(1));
    CHECK(exact.receive(answer_bytes).size() == answer_bytes);
    CHECK(end_of(exact.descriptor(), milliseconds(1000)) == End::in_order);
    more.send(Bytes(proof_bytes + 1));
    CHECK(end_of(more.descriptor(), milliseconds(1000)) == End::reset);
  });
}

TEST_CASE("door: whoever sends a byte now and then does not live longer") {
  constexpr milliseconds patience{300};
  at_every_door({patience, 8}, [&](const Address& address, Purpose purpose) {
    const auto start = Clock::now();
    Stranger slow(address);
    const Bytes hello = hello_for(purpose);
    size_t sent = 0;
    End end = End::still_open;
    while (end == End::still_open && sent < hello.size() - 1) {
      slow.send(std::span(hello).subspan(sent++, 1));
      end = end_of(slow.descriptor(), milliseconds(10));
    }
    CHECK(end != End::still_open);
    CHECK(seconds_since(start) >= 0.29);
    CHECK(seconds_since(start) < 0.55);
  });
}

TEST_CASE("door: one more than may wait, and the oldest goes") {
  at_every_door({milliseconds(5000), 3}, [](const Address& address, Purpose) {
    std::vector<std::unique_ptr<Stranger>> silent;
    for (int i = 0; i < 3; ++i) silent.push_back(std::make_unique<Stranger>(address));
    for (const auto& stranger : silent)
      CHECK(end_of(stranger->descriptor(), milliseconds(30)) == End::still_open);
    Stranger one_more(address);
    CHECK(end_of(silent[0]->descriptor(), milliseconds(1000)) == End::in_order);
    CHECK(end_of(silent[1]->descriptor(), milliseconds(30)) == End::still_open);
    CHECK(end_of(one_more.descriptor(), milliseconds(30)) == End::still_open);
  });
}
