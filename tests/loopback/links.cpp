// One suite over every kind of link.
#include <doctest/doctest.h>

#include <array>
#include <random>

#include "transport/shm/fabric.hpp"
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
    Ends(std::pair<Stream, Stream> pair, const tcp::Sizes& sizes)
        : from(std::move(pair.first), sizes), to(std::move(pair.second), sizes) {}
    tcp::Connection from, to;
  };
  const tcp::Sizes sizes{.slot_bytes = 1024, .slots = 4, .call_bytes = 4096};
  auto ends = std::make_shared<Ends>(socket_pair(kind), sizes);
  return {ends, &ends->from.tx(), &ends->to.rx()};
}

// Fabrics of `world` ranks in one process and, as the thread sanitizer needs it, on one mapping of each area.
std::vector<std::unique_ptr<shm::ShmFabric>> shm_fabrics(uint32_t world, const shm::Sizes& sizes) {
  std::vector<std::shared_ptr<shm::Area>> areas;
  for (Rank rank = 0; rank < world; rank++)
    areas.push_back(std::make_shared<shm::Area>(std::move(*shm::Area::make({1, rank, world}, sizes))));
  std::vector<std::unique_ptr<shm::ShmFabric>> fabrics;
  for (Rank rank = 0; rank < world; rank++) {
    fabrics.push_back(std::make_unique<shm::ShmFabric>(areas[rank]));
    for (Rank peer = 0; peer < world; peer++)
      if (peer != rank) fabrics[rank]->adopt(areas[peer], [] {});
  }
  return fabrics;
}

Link shm_link() {
  const auto fabrics = std::make_shared<std::vector<std::unique_ptr<shm::ShmFabric>>>(
      shm_fabrics(2, {.slot_bytes = 1024, .slots = 4}));
  return {fabrics, (*fabrics)[0]->open(1, 0)->tx, (*fabrics)[1]->open(0, 0)->rx};
}

// A publication that only one rank reads.
Link shm_publication() {
  const auto fabrics = std::make_shared<std::vector<std::unique_ptr<shm::ShmFabric>>>(
      shm_fabrics(2, {.slot_bytes = 1024, .slots = 4}));
  return {fabrics, (*fabrics)[0]->publication(), (*fabrics)[1]->publication_of(0)};
}

// What is not small is pulled from where the writer has it.
Link shm_pulled() {
  const shm::Sizes sizes{.slot_bytes = 1024, .slots = 4};
  const auto ranks = std::make_shared<LentRanks>(
      2, sizes, SIZE_MAX, [](Rank) { return [] {}; }, Pulling{{0, 1}, 64});
  return {ranks, ranks->fabrics[0]->open(1, 0)->tx, ranks->fabrics[1]->open(0, 0)->rx};
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
                        {"tls", socket_link<SocketKind::tls>},
                        {"tiny tls", socket_link<SocketKind::tls_tiny>},
                        {"shm", shm_link},
                        {"shm publication", shm_publication},
                        {"shm pulled", shm_pulled},
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
  link.tx->poll();
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

TEST_CASE("links: every reader of a publication gets the whole stream, at its own pace") {
  constexpr uint32_t world = 4;
  constexpr uint64_t total = 100'000;
  const auto fabrics = shm_fabrics(world, {.slot_bytes = 1024, .slots = 4});
  Tx& tx = *fabrics[1]->publication();
  CHECK(tx.caps().readers == world - 1);
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (const Rank rank : {0u, 2u, 3u})
    readers.emplace_back([&, rank] {
      Rx& rx = *fabrics[rank]->publication_of(1);
      std::mt19937_64 random(rank);
      const TimePoint deadline = soon();
      uint64_t taken = 0;
      while (taken < total && Clock::now() < deadline) {
        const View view = rx.peek(1 + random() % 2000, 1);
        for (size_t i = 0; i < view.bytes; i++) wrong += view.data[i] != pattern(taken + i);
        rx.release(view.bytes);
        taken += view.bytes;
        if (view.bytes == 0 || random() % 8 == 0) std::this_thread::yield();
      }
      wrong += taken != total;
    });
  std::vector<std::byte> data(total);
  for (uint64_t i = 0; i < total; i++) data[i] = pattern(i);
  const TimePoint deadline = soon();
  for (uint64_t sent = 0; sent < total && Clock::now() < deadline; tx.poll()) {
    const size_t n = tx.send({data.data() + sent, std::min<uint64_t>(700, total - sent)});
    if (n == 0) std::this_thread::yield();
    sent += n;
  }
  for (auto& reader : readers) reader.join();
  CHECK(wrong == 0);
}

TEST_CASE("links: the slowest reader of a publication holds back the writer; no block is overwritten") {
  const auto fabrics = shm_fabrics(3, {.slot_bytes = 1024, .slots = 4});
  Tx& tx = *fabrics[0]->publication();
  Rx &quick = *fabrics[1]->publication_of(0), &slow = *fabrics[2]->publication_of(0);
  const auto publish = [&](uint8_t value) {
    const auto space = tx.acquire(1024);
    std::ranges::fill(space, std::byte(value));
    if (!space.empty()) tx.commit(space.size());
    return !space.empty();
  };
  for (uint8_t block = 0; block < 4; block++) CHECK(publish(block));
  CHECK_FALSE(publish(4));
  for (int block = 0; block < 4; block++) {
    CHECK(quick.peek(1024, 1).bytes == 1024);
    quick.release(1024);
  }
  CHECK_FALSE(publish(4));  // the slow one has released none
  const View first = slow.peek(1024, 1);
  CHECK(first.data[0] == std::byte(0));
  CHECK(first.data[1023] == std::byte(0));
  slow.release(1000);
  CHECK_FALSE(publish(4));  // a part is not enough
  slow.release(24);
  CHECK(publish(4));
  CHECK_FALSE(publish(5));
  CHECK(slow.peek(1, 1).data[0] == std::byte(1));  // the block after it is as it was
  CHECK(quick.peek(1, 1).data[0] == std::byte(4));
}

TEST_CASE("links: what is committed before poll is one block, small pieces beside a full segment") {
  const auto fabrics = shm_fabrics(2, {.slot_bytes = 1024, .slots = 2});
  Tx& tx = *fabrics[0]->open(1, 0)->tx;
  Rx& rx = *fabrics[1]->open(0, 0)->rx;
  const std::vector<std::byte> data(1024, std::byte(7));
  for (int block = 0; block < 2; block++) {
    CHECK(tx.send({data.data(), 16}) == 16);
    if (block == 0) CHECK(rx.peek(16, 1).bytes == 0);
    const auto space = tx.acquire(8);
    REQUIRE(space.size() == 8);
    space[0] = std::byte(9);
    tx.commit(8);
    CHECK(tx.send({data.data(), 1024}) == 1024);
    CHECK(tx.completed() == uint64_t(block) * 1048);
    tx.poll();
    CHECK(tx.completed() == uint64_t(block + 1) * 1048);
  }
  CHECK(tx.acquire(1).empty());
  CHECK(rx.peek(1024, 8).bytes == 24);
  CHECK(rx.peek(1024, 8).data[16] == std::byte(9));
  rx.release(24);
  CHECK(rx.peek(2048, 8).bytes == 1024);
  rx.release(1024);
  CHECK_FALSE(tx.acquire(1).empty());
}

TEST_CASE("links: large pieces wait for a block, small ones only for a slot") {
  const auto fabrics = shm_fabrics(2, {.slot_bytes = 1024, .slots = 4, .blocks = 2});
  Tx& tx = *fabrics[0]->open(1, 0)->tx;
  Rx& rx = *fabrics[1]->open(0, 0)->rx;
  const std::vector<std::byte> ones(1024, std::byte(1)), twos(1024, std::byte(2)), small(40, std::byte(3));
  CHECK(tx.send({small.data(), 40}) == 40);
  tx.poll();
  CHECK(tx.send({ones.data(), 1024}) == 1024);
  CHECK(tx.send({twos.data(), 1024}) == 1024);
  CHECK(tx.send({ones.data(), 1024}) == 0);  // both blocks are taken, one slot is free
  rx.release(rx.peek(40, 1).bytes);
  CHECK(tx.send({ones.data(), 1024}) == 0);
  for (int round = 0; round < 6; round++) {  // around both, out of step with each other
    const View view = rx.peek(1024, 1);
    REQUIRE(view.bytes == 1024);
    CHECK(view.data[0] == std::byte(1 + round % 2));
    CHECK(view.data[1023] == std::byte(1 + round % 2));
    rx.release(1024);
    CHECK(tx.send({(round % 2 == 0 ? ones : twos).data(), 1024}) == 1024);
    CHECK(tx.acquire(1).empty());
  }
  rx.release(rx.peek(1024, 1).bytes);
  rx.release(rx.peek(1024, 1).bytes);
  for (int slot = 0; slot < 4; slot++) {
    CHECK(tx.send({small.data(), 40}) == 40);
    tx.poll();
  }
  CHECK(tx.acquire(1).empty());
  for (int slot = 0; slot < 4; slot++) {
    CHECK(rx.peek(40, 1).bytes == 40);
    rx.release(40);
  }
}

TEST_CASE(
    "links: a publication ends for its writer when a reader closes, for its readers when the writer does") {
  const auto fabrics = shm_fabrics(3, {.slot_bytes = 1024, .slots = 4});
  std::array<std::byte, 8> bytes{};
  CHECK(fabrics[0]->publication()->send({bytes.data(), bytes.size()}) == bytes.size());
  CHECK(fabrics[0]->publication()->poll() == LinkState::open);
  CHECK(fabrics[2]->publication_of(0)->poll() == LinkState::open);
  SUBCASE("not a reader that has taken all, while another one still reads") {
    CHECK(fabrics[1]->publication_of(0)->receive(bytes) == bytes.size());
    fabrics[1]->publication_of(0)->close();
    CHECK(fabrics[0]->publication()->poll() == LinkState::open);
    CHECK(fabrics[0]->publication()->send({bytes.data(), bytes.size()}) == bytes.size());
    fabrics[0]->publication()->poll();
    CHECK(fabrics[0]->publication()->poll() == LinkState::closed);
  }
  SUBCASE("a reader") {
    fabrics[1]->publication_of(0)->close();
    CHECK(fabrics[0]->publication()->poll() == LinkState::closed);
    CHECK(fabrics[2]->publication()->poll() == LinkState::open);
  }
  SUBCASE("a rank") {
    fabrics[1]->close();
    CHECK(fabrics[0]->publication()->poll() == LinkState::closed);
    CHECK(fabrics[2]->publication_of(1)->poll() == LinkState::closed);
    CHECK(fabrics[2]->open(1, 0)->rx->poll() == LinkState::closed);
    CHECK(fabrics[2]->open(1, 0)->tx->poll() == LinkState::closed);
    CHECK(fabrics[2]->open(0, 0)->tx->poll() == LinkState::open);
  }
}

}  // namespace rondo::test
