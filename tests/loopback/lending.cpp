// Memory that ranks lend each other: when it is referred to, when its owner has it back, and who may lend.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>

#include "lent.hpp"
#include "ranks.hpp"
#include "world.hpp"

namespace rondo::test {
namespace {

constexpr shm::Sizes sizes{.slot_bytes = 1024, .slots = 4};

Memory some(size_t bytes) {
  auto memory = allocate(bytes);
  REQUIRE(memory.ok());
  return std::move(*memory);
}
View part(const Memory& memory, size_t offset, size_t bytes) { return {memory.data() + offset, bytes}; }

// Mappings of memory that other ranks lend, in this process.
size_t borrowed_mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t found = 0;
  for (std::string line; std::getline(maps, line);)
    found += line.find("memfd:rondo") != line.npos && line.find("r--s") != line.npos;
  return found;
}

}  // namespace

TEST_CASE("allocate: zeroed, aligned, movable; an error where there is no such memory") {
  Memory memory = some(10'001);
  CHECK(memory.size() == 10'001);
  CHECK(memory.span<int32_t>().size() == 2500);
  CHECK(reinterpret_cast<uintptr_t>(memory.data()) % 4096 == 0);
  CHECK(std::ranges::all_of(memory.span<std::byte>(), [](std::byte b) { return b == std::byte(0); }));
  std::byte* const at = memory.data();
  Memory moved = std::move(memory);
  CHECK(moved.data() == at);
  CHECK(memory.data() == nullptr);
  memory = some(5);
  moved = std::move(memory);
  CHECK(moved.size() == 5);
  CHECK(allocate(0)->size() == 0);
  const auto none = allocate(size_t(1) << 60);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == ErrorCode::system);
}

TEST_CASE("allocate: the limit of a file's size is an error that says so, not SIGXFSZ") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low{1 << 20, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  const auto above = allocate((1 << 20) + 1), within = allocate(1 << 20);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(within.ok());
  REQUIRE_FALSE(above.ok());
  CHECK(above.error().code == ErrorCode::system);
  CAPTURE(above.error().message);
  CHECK(above.error().message.find("larger than 1048576 bytes (ulimit -f)") != std::string::npos);
}

TEST_CASE("allocate: memory comes and goes without a trace") {
  const size_t before = entries("/proc/self/fd");
  {
    std::vector<Memory> all;
    for (int i = 0; i < 300; i++) all.push_back(some(size_t(1) + 5000 * i));
    CHECK(entries("/proc/self/fd") == before + 300);
    for (size_t i = 0; i < all.size(); i += 2) all[i] = Memory();
    for (size_t i = 0; i < all.size(); i++) all[i].span<std::byte>();
  }
  CHECK(entries("/proc/self/fd") == before);
}

TEST_CASE("lending: copied until the reader has mapped it; then the reader sees the memory itself") {
  LentRanks ranks(2, sizes, 64);
  Tx& tx = *ranks.fabrics[0]->open(1, 0)->tx;
  Rx& rx = *ranks.fabrics[1]->open(0, 0)->rx;
  const Memory memory = some(10'000);
  const auto take = [&](size_t bytes) {
    const View view = rx.peek(bytes, 1);
    CHECK(view.bytes == bytes);
    return view.data;
  };
  CHECK(tx.send(part(memory, 100, 500)) == 500);
  tx.poll();
  CHECK(tx.completed() == 500);
  CHECK(take(500) != memory.data() + 100);
  rx.release(500);
  ranks.deliver();
  CHECK(tx.send(part(memory, 0, 63)) == 63);  // not worth it, and beside a large piece there is no reference
  CHECK(tx.send(part(memory, 100, 500)) == 500);
  tx.poll();
  CHECK(tx.completed() == 563);  // the position of what the reader has not released
  CHECK(take(63) != memory.data());
  rx.release(63);
  CHECK(take(500) == memory.data() + 100);
  rx.release(499);
  tx.poll();
  CHECK(tx.completed() == 563);
  rx.release(1);
  tx.poll();
  CHECK(tx.completed() == 1063);
  // A reference may be longer than a slot; there are no more of them than slots.
  for (size_t i = 0; i < 5; i++) CHECK(tx.send(part(memory, 3 + i, 2000)) == (i < 4 ? 2000 : 0));
  for (size_t i = 0; i < 4; i++) {
    CHECK(take(2000) == memory.data() + 3 + i);
    rx.release(2000);
    tx.poll();
    CHECK(tx.completed() == 1063 + 2000 * (i + 1));
  }
  CHECK(ranks.fabrics[0]->bytes_referred() == 500 + 4 * 2000);
}

TEST_CASE("lending: a header and a reference share a slot; copies after a reference wait for nobody") {
  LentRanks ranks(2, sizes, 64);
  Tx& tx = *ranks.fabrics[0]->open(1, 0)->tx;
  Rx& rx = *ranks.fabrics[1]->open(0, 0)->rx;
  const Memory memory = some(4096);
  const std::byte header[40]{};
  tx.send(part(memory, 0, 64));
  ranks.deliver();
  std::byte sink[5000];
  CHECK(tx.poll() == LinkState::open);
  CHECK(rx.receive(sink) == 64);
  for (int round = 0; round < 4; round++) {
    CHECK(tx.send({header, 40}) == 40);
    CHECK(tx.send(part(memory, 64, 640)) == 640);
  }
  CHECK(tx.acquire(1).empty());
  for (int round = 0; round < 4; round++) {
    CHECK(rx.peek(5000, 1).bytes == 40);
    rx.release(40);
    CHECK(rx.peek(5000, 1).data == memory.data() + 64);
    rx.release(640);
  }
  CHECK(tx.completed() == 64 + 40);
  CHECK(tx.send(part(memory, 0, 64)) == 64);
  CHECK(tx.send({header, 40}) == 40);
  tx.poll();
  CHECK(tx.completed() == 64 + 4 * 680);
  CHECK(rx.receive(sink) == 104);
  tx.poll();
  CHECK(tx.completed() == 64 + 4 * 680 + 104);
}

TEST_CASE("lending: a publication's source is the writer's again when the last reader has released it") {
  LentRanks ranks(3, sizes, 64);
  Tx& tx = *ranks.fabrics[0]->publication();
  Rx &one = *ranks.fabrics[1]->publication_of(0), &two = *ranks.fabrics[2]->publication_of(0);
  const Memory memory = some(4096);
  tx.send(part(memory, 0, 64));
  tx.poll();
  std::byte sink[64];
  for (Rx* rx : {&one, &two}) CHECK(rx->receive(sink) == 64);
  ranks.borrowers[1]->receive(ranks.mailboxes[1].get());
  tx.send(part(memory, 0, 64));
  tx.poll();
  CHECK(tx.completed() == 128);  // rank 2 has not mapped it
  for (Rx* rx : {&one, &two}) CHECK(rx->receive(sink) == 64);
  ranks.deliver();
  tx.send(part(memory, 128, 256));
  for (Rx* rx : {&one, &two}) CHECK(rx->peek(256, 1).data == memory.data() + 128);
  one.release(256);
  tx.poll();
  CHECK(tx.completed() == 128);
  two.release(256);
  tx.poll();
  CHECK(tx.completed() == 384);
}

TEST_CASE(
    "lending: freed memory is given back, its place is lent again, and beyond the limit data are copied") {
  LentRanks ranks(2, sizes, 64);
  Tx& tx = *ranks.fabrics[0]->open(1, 0)->tx;
  Rx& rx = *ranks.fabrics[1]->open(0, 0)->rx;
  const auto referred = [&](const Memory& memory) {
    std::byte sink[64];
    for (int i = 0; i < 2; i++) {
      CHECK(tx.send(part(memory, 8, 64)) == 64);
      tx.poll();
      const View view = rx.peek(64, 1);
      CHECK(view.bytes == 64);
      const bool itself = view.data == memory.data() + 8;
      CHECK(std::memcmp(view.data, memory.data() + 8, 64) == 0);
      CHECK(rx.receive(sink) == 64);
      tx.poll();
      ranks.deliver();
      if (i == 1) return itself;
    }
    return false;
  };
  std::vector<Memory> all;
  for (int i = 0; i < shm::most_lent + 40; i++) {
    all.push_back(some(8192));
    std::ranges::fill(all.back().span<std::byte>(), std::byte(i));
    CHECK(referred(all.back()) == (i < shm::most_lent));
  }
  for (size_t i = 0; i < 100; i++) all[i] = Memory();
  ranks.deliver();
  for (uint16_t i = 0; i < 100; i++) CHECK(ranks.borrowers[1]->find(0, i) == nullptr);
  CHECK(ranks.borrowers[1]->find(0, 100) != nullptr);
  CHECK(referred(all.back()));
  for (int i = 0; i < 1000; i++) {
    const Memory memory = some(4096);
    std::ranges::fill(memory.span<std::byte>(), std::byte(i));
    CHECK(referred(memory));
  }
}

TEST_CASE("lending: what is not proven, not sealed or of another size is not mapped") {
  LentRanks ranks(2, sizes, 64);
  const auto sender = shm::Sender::make();
  REQUIRE(sender.ok());
  const auto region = shm::Region::make(8192);
  REQUIRE(region.ok());
  const Descriptor unsealed = shm::make_memory(8192);
  const auto& key = ranks.areas[1]->header().at.key;
  shm::RandomName wrong_key = key;
  wrong_key[15] ^= std::byte(1);
  ranks.areas[0]->lent(3).store(1);
  struct Try {
    shm::Offer offer;
    int memory;
  };
  const int good = (*region)->descriptor();
  const Try tries[]{{{wrong_key, 1, 8192, 0, 3}, good}, {{key, 1, 8192, 2, 3}, good},
                    {{key, 1, 8192, 1, 3}, good},       {{key, 1, 8192, 0, shm::most_lent}, good},
                    {{key, 2, 8192, 0, 3}, good},       {{key, 1, 8192, 0, 4}, good}};
  const size_t before = entries("/proc/self/fd");
  const auto send = [&](const Try& t, size_t bytes = sizeof(shm::Offer)) {
    const auto letter = std::as_bytes(std::span(&t.offer, 1)).first(bytes);
    CHECK(sender->send(ranks.areas[1]->header().at.post, letter, t.memory));
    ranks.deliver();
    CHECK(entries("/proc/self/fd") == before);
    return ranks.borrowers[1]->find(0, 3) != nullptr;
  };
  for (const Try& t : tries) CHECK_FALSE(send(t));
  CHECK_FALSE(send({{key, 1, 8192, 0, 3}, good}, sizeof(shm::Offer) - 1));
  CHECK(ranks.areas[1]->row(0).mapped.load() == 0);
  SUBCASE("none of that stands in the way of a proper one") {
    CHECK(send({{key, 1, 8192, 0, 3}, good}));
    CHECK(ranks.areas[1]->row(0).mapped.load() == 1);
  }
  SUBCASE("not sealed") { CHECK_FALSE(send({{key, 1, 8192, 0, 3}, unsealed.get()})); }
  SUBCASE("another size") { CHECK_FALSE(send({{key, 1, 4096, 0, 3}, good})); }
  SUBCASE("no memory") { CHECK_FALSE(send({{key, 1, 8192, 0, 3}, -1})); }
}

TEST_CASE("lending: a slot that refers to memory that is not there breaks the link, and is not read") {
  for (const bool outside : {false, true}) {
    LentRanks ranks(2, sizes, 64);
    Tx& tx = *ranks.fabrics[0]->open(1, 0)->tx;
    Rx& rx = *ranks.fabrics[1]->open(0, 0)->rx;
    Memory memory = some(4096);
    std::byte sink[64];
    tx.send(part(memory, 0, 64));
    tx.poll();
    CHECK(rx.receive(sink) == 64);
    ranks.deliver();
    tx.send(part(memory, 4096 - 64, 64));
    if (outside) {
      const uint64_t offset = 4096 - 63;
      std::memcpy(ranks.areas[0]->slots(1)[1].offset_data(), &offset, sizeof offset);
    } else {
      memory = Memory();
      ranks.deliver();
    }
    CHECK(rx.peek(64, 1).bytes == 0);
    CHECK(rx.poll() == LinkState::failed);
  }
}

TEST_CASE("lending: an operation does not end before what it refers to is released; its time-out says so") {
  World world = World::over_lent_shm(2, {}, 4096);
  const auto broadcast = [&](Rank rank, engine::Engine& engine, TimePoint deadline) {
    std::byte* const at = world.buffer(rank, 0).data();
    return engine.run({.operation = schedule::Operation::broadcast,
                       .algorithm = schedule::Algorithm::direct,
                       .type = DataType::u8,
                       .reduction = Reduction::sum,
                       .count = 20'000,
                       .root = 0,
                       .input = at,
                       .output = at},
                      deadline);
  };
  const TimePoint patience = soon();
  while (world.bytes_referred() == 0 && Clock::now() < patience)
    world.run([&](Rank rank, engine::Engine& engine) { CHECK(broadcast(rank, engine, soon()).ok()); });
  CHECK(world.bytes_referred() > 0);
  // Copies of so few bytes would be in the slots, and rank 0 through.
  const auto alone = broadcast(0, world.engine(0), deadline_after(milliseconds(100)));
  REQUIRE_FALSE(alone.ok());
  CHECK(alone.error().code == ErrorCode::timeout);
  CHECK(alone.error().message.find("not all ranks have taken what this rank publishes") != std::string::npos);
}

TEST_CASE("lending: strangers who flood the mailboxes, with memory of their own, disturb nobody") {
  const auto mailboxes = [] {
    std::vector<shm::RandomName> names;
    std::ifstream list("/proc/net/unix");
    for (std::string line; std::getline(list, line);) {
      const size_t at = line.find("@rondo-post-");
      if (at == line.npos) continue;
      const std::string digits = line.substr(at + 12);
      for (size_t i = 0; i < 16 && digits.size() == 32; i++) {
        if (i == 0) names.emplace_back();
        names.back()[i] = std::byte(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
      }
    }
    return names;
  };
  const auto others = mailboxes();
  on_ranks(2, [&](Communicator& comm) {
    std::atomic<bool> over{false};
    std::atomic<uint64_t> letters{0};
    std::thread stranger([&] {
      const auto sender = shm::Sender::make();
      const auto region = shm::Region::make(4 << 20);
      const auto names = mailboxes();
      const shm::Offer offer{{}, 1, 4 << 20, 1 - comm.rank(), 0};
      while (!over)
        for (const auto& name : names)
          if (std::ranges::find(others, name) == others.end())
            letters += sender->send(name, std::as_bytes(std::span(&offer, 1)), (*region)->descriptor());
    });
    Memory memory = some(4 << 20);
    const auto data = memory.span<int32_t>();
    for (int i = 0; i < 20; i++) {
      std::ranges::fill(data, int32_t(comm.rank()) + i);
      CHECK(comm.all_reduce(data).ok());
      CHECK(std::ranges::all_of(data, [&](int32_t value) { return value == 2 * i + 1; }));
    }
    over = true;
    stranger.join();
    CHECK(letters > 0);
  });
}

TEST_CASE("lending: hundreds of pieces made and freed between calls of several communicators") {
  const size_t before = borrowed_mappings();
  on_ranks(3, [&](Communicator& comm) {
    auto twin = comm.duplicate();
    REQUIRE(twin.ok());
    std::vector<Memory> kept;
    for (int i = 0; i < 400; i++) {
      Memory memory = some(40'000 + 8 * i);
      const auto data = memory.span<int32_t>().subspan(size_t(i) % 5);
      Communicator& used = i % 3 == 0 ? *twin : comm;
      for (int again = 0; again < 3; again++) {
        for (size_t k = 0; k < data.size(); k++) data[k] = int32_t(k) * int(comm.rank() + 1) + again;
        CHECK(used.all_reduce(data).ok());
        size_t wrong = 0;
        for (size_t k = 0; k < data.size(); k++) wrong += data[k] != int32_t(k) * 6 + 3 * again;
        CHECK(wrong == 0);
      }
      if (i % 2 == 0) kept.push_back(std::move(memory));
      if (i == 350) kept.clear();
    }
    CHECK(comm.barrier().ok());
  });
  // The service has the last of it unmapped in its own time.
  for (int i = 0; i < 2000 && borrowed_mappings() > before; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(borrowed_mappings() <= before);
}

}  // namespace rondo::test
