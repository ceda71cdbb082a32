// Private memory that readers pull: the right bytes, when its owner has it back, and what comes of a pull that
// cannot be.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "world.hpp"

namespace rondo::test {
namespace {

constexpr shm::Sizes sizes{.slot_bytes = 1024, .slots = 4};

struct Pulled : LentRanks {
  explicit Pulled(std::vector<Rank> who = {0, 1}, size_t from = 64)
      : LentRanks(2, sizes, SIZE_MAX, [](Rank) { return [] {}; }, {std::move(who), from}) {}
  Tx& tx() { return *fabrics[0]->open(1, 0)->tx; }
  Rx& rx() { return *fabrics[1]->open(0, 0)->rx; }
};

std::vector<std::byte> numbers(size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; i++) all[i] = std::byte((i * 2654435761u) >> 13);
  return all;
}

// Pages of their own, which can be taken away.
struct Pages {
  explicit Pages(size_t size) : bytes(size) {
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    data = static_cast<std::byte*>(at);
  }
  Pages(const Pages&) = delete;
  ~Pages() { take_away(); }
  void take_away() {
    if (data != nullptr) ::munmap(std::exchange(data, nullptr), bytes);
  }
  std::byte* data;
  const size_t bytes;
};

}  // namespace

TEST_CASE("pulling: the bytes are exact, however they begin, and whatever they are longer than") {
  const auto source = numbers((3 << 20) + 100);
  for (const size_t at : {size_t(0), size_t(1), size_t(4095)})
    for (const size_t bytes : {size_t(64), size_t(1000), size_t(256 << 10), size_t((256 << 10) + 1),
                               size_t((1 << 20) + 13), size_t(3 << 20) - 4096})
      for (const bool whole : {false, true}) {
        Pulled ranks;
        CHECK(ranks.tx().send({source.data() + at, bytes}) == bytes);
        CHECK(ranks.fabrics[0]->bytes_referred() == bytes);
        std::vector<std::byte> got(bytes);
        if (whole) {
          CHECK(ranks.rx().receive(got) == bytes);
        } else {
          // Elements of 12 bytes, which no scratch holds a whole number of.
          for (size_t taken = 0; taken < bytes;) {
            const size_t quantum = bytes - taken >= 12 ? 12 : 1;
            const View view = ranks.rx().peek(bytes - taken, quantum);
            REQUIRE(view.bytes > 0);
            CHECK(view.bytes % quantum == 0);
            CHECK(view.bytes <= 256 << 10);
            std::copy_n(view.data, view.bytes, got.begin() + ptrdiff_t(taken));
            ranks.rx().release(view.bytes);
            taken += view.bytes;
          }
        }
        CHECK(std::memcmp(got.data(), source.data() + at, bytes) == 0);
        CHECK(ranks.rx().peek(1, 1).bytes == 0);
        ranks.tx().poll();
        CHECK(ranks.tx().completed() == bytes);
      }
}

TEST_CASE("pulling: what is looked at is released in parts; the writer waits for the last") {
  const auto source = numbers(600'000);
  Pulled ranks;
  const std::byte header[24]{};
  CHECK(ranks.tx().send({header, 24}) == 24);
  CHECK(ranks.tx().send({source.data() + 3, 500'000}) == 500'000);
  CHECK(ranks.rx().peek(1000, 1).bytes == 24);
  ranks.rx().release(24);
  const auto is_at = [&](const View& view, size_t at) {
    return std::memcmp(view.data, source.data() + 3 + at, view.bytes) == 0;
  };
  const View first = ranks.rx().peek(100, 8);
  CHECK(first.bytes == 96);
  CHECK(is_at(first, 0));
  ranks.rx().release(50);
  const View second = ranks.rx().peek(500'000, 1);
  CHECK(second.bytes == 50);  // what is left of the 100 that were pulled
  CHECK(is_at(second, 50));
  const View more = ranks.rx().peek(500'000, 64);
  CHECK(more.bytes == 256 << 10);
  CHECK(is_at(more, 50));
  ranks.rx().release(1000);
  std::vector<std::byte> rest(499'000);
  CHECK(ranks.rx().receive(std::span(rest).first(100'000)) == 100'000);
  CHECK(is_at({rest.data(), 100'000}, 1050));
  const View last = ranks.rx().peek(10, 1);
  CHECK(is_at(last, 101'050));
  CHECK(last.bytes == 10);
  ranks.tx().poll();
  CHECK(ranks.tx().completed() == 24);
  CHECK(ranks.rx().receive(rest) == 500'000 - 101'050);
  CHECK(is_at({rest.data(), 500'000 - 101'050}, 101'050));
  ranks.tx().poll();
  CHECK(ranks.tx().completed() == 500'024);
}

TEST_CASE("pulling: only where the reader can, only pieces that are worth it, from where the kernel reads") {
  const auto source = numbers(1024);
  const auto refers = [&](Pulled& ranks, const View& piece) {
    CHECK(ranks.tx().send(piece) == piece.bytes);
    ranks.tx().poll();
    std::vector<std::byte> got(piece.bytes);
    CHECK(ranks.rx().receive(got) == piece.bytes);
    CHECK(std::memcmp(got.data(), piece.data, piece.bytes) == 0);
    return ranks.fabrics[0]->bytes_referred() > 0;
  };
  Pulled both, reader({1}), writer({0}), none(std::vector<Rank>{});
  CHECK_FALSE(refers(both, {source.data(), 63}));
  CHECK(refers(both, {source.data(), 64}));
  CHECK(refers(reader, {source.data(), 1000}));
  CHECK_FALSE(refers(writer, {source.data(), 1000}));
  CHECK_FALSE(refers(none, {source.data(), 1000}));
  Pulled idle_reader;
  CHECK(idle_reader.tx().send({source.data(), 1000}, Traffic::one_way) == 1000);
  CHECK(idle_reader.fabrics[0]->bytes_referred() == 0);

  const shm::Testimony own = both.areas[0]->header().testimony;
  const Pages pages(3 * 4096);
  CHECK(shm::can_be_pulled(own, {pages.data, pages.bytes}));
  CHECK(::mprotect(pages.data + 2 * 4096, 4096, PROT_NONE) == 0);
  CHECK(shm::can_be_pulled(own, {pages.data, 2 * 4096}));
  CHECK_FALSE(shm::can_be_pulled(own, {pages.data, pages.bytes}));
  shm::Testimony another = own;
  another.process++;
  CHECK_FALSE(shm::can_be_pulled(another, {pages.data, 4096}));
}

TEST_CASE("pulling: another process than the writer is not believed") {
  for (const int what : {0, 1, 2, 3}) {
    CAPTURE(what);
    Pulled ranks(std::vector<Rank>{});
    shm::Testimony& testimony = ranks.areas[0]->header().testimony;
    const auto can = [&] {
      shm::try_to_pull(*ranks.areas[1], *ranks.areas[0]);
      return ranks.areas[1]->row(0).pulls.load() != 0;
    };
    if (what == 0) testimony.number[1] ^= 1;
    if (what == 1) testimony.process = ::getppid();
    if (what == 2) testimony.address = 8;
    if (what == 3) ranks.areas[0]->withdraw();
    CHECK_FALSE(can());
    if (what == 3) testimony.number = {};  // nor when that is what is left of it
    CHECK_FALSE(can());
  }
}

TEST_CASE("pulling: what cannot be read any more breaks the link, and nothing is given") {
  for (const bool looks : {true, false}) {
    CAPTURE(looks);
    Pulled ranks;
    Pages pages(1 << 20);
    CHECK(ranks.tx().send({pages.data, pages.bytes}) == pages.bytes);
    std::vector<std::byte> got(1 << 20);
    CHECK(ranks.rx().receive(std::span(got).first(100)) == 100);
    SUBCASE("gone") { pages.take_away(); }
    SUBCASE("the writer has closed, and its caller uses the memory again") {
      ranks.fabrics[0]->close();
      std::fill_n(pages.data, pages.bytes, std::byte(7));
    }
    for (int again = 0; again < 2; again++) {
      CHECK((looks ? ranks.rx().peek(1000, 1).bytes : ranks.rx().receive(got)) == 0);
      CHECK(ranks.rx().poll() == LinkState::failed);
    }
    ranks.tx().poll();
    CHECK(ranks.tx().completed() == 0);
  }
}

TEST_CASE("pulling: a call whose pull fails names the peer") {
  World world = World::over_pulled_shm({}, 4096);
  Pages sent(1 << 20), received(1 << 20);
  const auto all_reduce = [&](Rank rank, TimePoint deadline) {
    std::byte* const at = (rank == 0 ? sent : received).data;
    return world.engine(rank).run({.operation = schedule::Operation::all_reduce,
                                   .algorithm = schedule::Algorithm::direct,
                                   .type = DataType::u8,
                                   .reduction = Reduction::sum,
                                   .count = 1 << 20,
                                   .input = at,
                                   .output = at},
                                  deadline);
  };
  const auto alone = all_reduce(0, deadline_after(milliseconds(50)));
  REQUIRE_FALSE(alone.ok());
  CHECK(alone.error().code == ErrorCode::timeout);
  sent.take_away();
  const auto late = all_reduce(1, soon());
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code == ErrorCode::peer_lost);
  CHECK(late.error().peer == Rank(0));
}

}  // namespace rondo::test
