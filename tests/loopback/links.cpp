// One suite over every kind of link.
#include <doctest/doctest.h>

#include <random>

#include "transport/shm/link.hpp"
#include "world.hpp"

namespace rondo::test {
namespace {

// The two ends of one direction, and what keeps them alive.
struct Link {
  std::shared_ptr<void> owner;
  Tx* tx;
  Rx* rx;
};

struct Maker {
  std::string name;
  Link (*make)();
};

template <SocketKind kind>
Link socket_link() {
  struct Ends {
    Ends(std::pair<Descriptor, Descriptor> pair, const tcp::Sizes& sizes)
        : from(std::move(pair.first), sizes), to(std::move(pair.second), sizes) {}
    tcp::Connection from, to;
  };
  const tcp::Sizes sizes{.slot_bytes = 1024, .slots = 4, .call_bytes = 4096};
  auto ends = std::make_shared<Ends>(socket_pair(kind), sizes);
  return {ends, &ends->from.tx(), &ends->to.rx()};
}

// Both ends in one process and, as the thread sanitizer needs it, on one mapping of each area.
Link shm_link() {
  struct Ends {
    shm::Area from = std::move(*shm::Area::make(1, 0, 2, {.slot_bytes = 1024, .slots = 4}));
    shm::Area to = std::move(*shm::Area::make(1, 1, 2, {.slot_bytes = 1024, .slots = 4}));
    shm::ShmTx tx{{&from, &to, 0, 1}, [] {}};
    shm::ShmRx rx{{&to, &from, 1, 0}, [] {}};
  };
  auto ends = std::make_shared<Ends>();
  return {ends, &ends->tx, &ends->rx};
}

Link fake_link(const fake::Faults& faults) {
  struct Ends {
    explicit Ends(const fake::Faults& faults)
        : network(2, {.slot_bytes = 1024, .slots = 4}, faults, [](Rank) {}) {}
    fake::Network network;
    std::unique_ptr<Fabric> a, b;
  };
  auto ends = std::make_shared<Ends>(faults);
  ends->a = ends->network.fabric(0);
  ends->b = ends->network.fabric(1);
  return {ends, ends->a->open(1, 0)->tx, ends->b->open(0, 0)->rx};
}
Link good_fake() { return fake_link({}); }
Link choppy_fake() {
  return fake_link({.capacity = 700, .largest_write = 13, .write_refused = .3, .read_hidden = .3});
}

const Maker makers[] = {{"tcp4", socket_link<SocketKind::tcp4>},
                        {"unix", socket_link<SocketKind::unix_pair>},
                        {"shm", shm_link},
                        {"fake", good_fake},
                        {"choppy fake", choppy_fake}};

std::byte pattern(uint64_t i) { return std::byte((i * 2654435761u) >> 13); }

// Sends `total` patterned bytes by a random mix of send and acquire/commit, takes them by a random mix of
// receive and peek/release; returns the number of wrong bytes.
uint64_t stream(Link& link, uint64_t total, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> data(total), got(total);
  for (uint64_t i = 0; i < total; i++) data[i] = pattern(i);
  uint64_t sent = 0, taken = 0, wrong = 0;
  const auto any = [&](uint64_t most) { return std::uniform_int_distribution<uint64_t>(1, most)(random); };
  const TimePoint deadline = soon();
  while (taken < total && Clock::now() < deadline) {
    const uint64_t offer = std::min(any(3000), total - sent);
    if (offer > 0 && any(2) == 1) {
      sent += link.tx->send({data.data() + sent, offer});
    } else if (offer > 0) {
      const auto space = link.tx->acquire(std::min<uint64_t>(offer, 1024));
      std::copy_n(data.begin() + ptrdiff_t(sent), space.size(), space.begin());
      if (!space.empty()) link.tx->commit(space.size());
      sent += space.size();
    }
    link.tx->poll();
    const uint64_t want = std::min(any(5000), total - taken);
    if (any(2) == 1) {
      taken += link.rx->receive(std::span(got).subspan(taken, want));
    } else if (want >= 8) {
      const View view = link.rx->peek(want, 8);
      CHECK(view.bytes % 8 == 0);
      CHECK(view.bytes <= want);
      const uint64_t used = view.bytes == 0 ? 0 : any(view.bytes);
      std::copy_n(view.data, used, got.begin() + ptrdiff_t(taken));
      link.rx->release(used);
      taken += used;
    }
  }
  CHECK(taken == total);
  for (uint64_t i = 0; i < taken; i++) wrong += got[i] != pattern(i);
  CHECK(link.tx->completed() == total);
  return wrong;
}

}  // namespace

TEST_CASE("links: a stream arrives whole and in order by every mix of calls") {
  for (const Maker& maker : makers) {
    CAPTURE(maker.name);
    for (const uint64_t seed : {1, 2, 3}) {
      Link link = maker.make();
      CHECK(stream(link, 200'000, seed) == 0);
    }
  }
}

TEST_CASE("links: credit ends, and comes back when the reader takes what is there") {
  for (const Maker& maker : makers) {
    CAPTURE(maker.name);
    Link link = maker.make();
    uint64_t committed = 0;
    for (int refused = 0; refused < 100;) {
      const auto space = link.tx->acquire(1024);
      if (!space.empty()) link.tx->commit(space.size());
      refused = space.empty() ? refused + 1 : 0;
      committed += space.size();
      link.tx->poll();
      REQUIRE(committed < 64u << 20);
    }
    std::vector<std::byte> sink(1 << 20);
    const TimePoint deadline = soon();
    for (uint64_t taken = 0; taken < committed && Clock::now() < deadline; link.tx->poll())
      taken += link.rx->receive(sink);
    CHECK(link.tx->completed() == committed);
  }
}

TEST_CASE("links: closing an end shows on the other, after what was sent before") {
  for (const Maker& maker : makers) {
    CAPTURE(maker.name);
    Link link = maker.make();
    const std::vector<std::byte> data(5, std::byte{7});
    for (size_t sent = 0; sent < data.size(); link.tx->poll())
      sent += link.tx->send({data.data() + sent, data.size() - sent});
    link.tx->close();
    link.tx->close();
    std::vector<std::byte> got(64);
    size_t taken = 0;
    const TimePoint deadline = soon();
    while (Clock::now() < deadline && (taken < 5 || link.rx->poll() == LinkState::open))
      taken += link.rx->receive(std::span(got).subspan(taken));
    CHECK(taken == 5);
    CHECK(link.rx->poll() == LinkState::closed);
    CHECK(link.tx->send({data.data(), 5}) == 0);
  }
}

}  // namespace rondo::test
