// What use leaves behind: nothing. Descriptors, threads, mappings and memory after many rounds are what they
// were after the first.
#include <optional>

#include "ranks.hpp"
#include "tests/usage.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

void check_same(const Usage& before) {
  Usage after;
  // A thread that has been joined is in /proc for a moment more.
  for (int i = 0; i < 1000 && after.threads > before.threads; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    after = Usage();
  }
  INFO("open before:\n", before.open, "and after:\n", after.open);
  CHECK(after.descriptors <= before.descriptors);
  CHECK(after.threads <= before.threads);
  CHECK(after.mappings <= before.mappings + few_mappings);
  CHECK(after.resident_KiB <= before.resident_KiB + some_KiB);
}

// Made, used in every way, split, some of it left pending, and destroyed.
void cycle(bool leave_pending) {
  on_ranks(2, [&](Communicator& comm) {
    std::vector<float> data(1000, 1.f);
    CHECK(comm.all_reduce(std::span(data)).ok());
    auto twin = comm.duplicate();
    REQUIRE(twin.ok());
    auto work = twin->async_all_reduce(std::span(data));
    REQUIRE(work.ok());
    if (!leave_pending) CHECK(work->wait().ok());
    if (leave_pending && comm.rank() == 1) comm.abort();
  });
}

void cycles(int count) {
  for (int i = 0; i < 30; i++) cycle(i % 3 == 0);
  const Usage before;
  for (int i = 0; i < count; i++) cycle(i % 3 == 0);
  check_same(before);
}

void operations(int count) {
  on_ranks(2, [&](Communicator& comm) {
    constexpr int at_once = 50;
    std::vector<std::vector<int32_t>> data(at_once, std::vector<int32_t>(8));
    const auto round = [&] {
      std::vector<Work> works;
      int wrong = 0;
      for (auto& vector : data) {
        vector.assign(8, 1);
        works.push_back(*comm.async_all_reduce(std::span(vector)));
      }
      wrong += !comm.barrier().ok();
      for (Work& work : works) wrong += !work.wait().ok();
      for (auto& vector : data) wrong += vector != std::vector<int32_t>(8, 2);
      for (auto& vector : data) wrong += !comm.all_reduce(std::span(vector)).ok();
      for (auto& vector : data) wrong += vector != std::vector<int32_t>(8, 4);
      return wrong;
    };
    int wrong = 0;
    for (int i = 0; i < 20; i++) wrong += round();
    // Rank 0 measures while the other rank waits: to look takes a descriptor.
    std::optional<Usage> before;
    CHECK(comm.barrier().ok());
    if (comm.rank() == 0) before.emplace();
    CHECK(comm.barrier().ok());
    for (int i = 0; i < count; i += 2 * at_once) wrong += round();
    CHECK(wrong == 0);
    CHECK(comm.barrier().ok());
    if (comm.rank() == 0) check_same(*before);
    CHECK(comm.barrier().ok());
  });
}

}  // namespace

TEST_CASE("soak: 60 cycles and 100,000 small operations leave everything as it was") {
  cycles(60);
  operations(100'000);
}

TEST_SUITE("slow: soak") {
  TEST_CASE("soak: 1,000 cycles and a million small operations leave everything as it was") {
    cycles(1000);
    operations(1'000'000);
  }
}
