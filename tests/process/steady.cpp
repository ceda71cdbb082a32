// What use leaves behind: nothing. Descriptors, threads, mappings and memory after many rounds are what they were after
// the first.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/sanitized.hpp"
#include "workers.hpp"

using namespace rondo::test;

namespace {

// A heap grows by 132 KiB at a time. Leaked mappings may be merged with their neighbours, so their size counts too.
constexpr size_t few_mappings = 4, some_KiB = 256;

struct Held {
  size_t descriptors = 0, threads = 0, mappings = 0, virtual_KiB = 0, resident_KiB = 0;
};

std::vector<Held> held_by(const Ended& ended) {
  std::vector<Held> all;
  for (const auto& line : lines(ended.out)) {
    if (!line.starts_with("held ")) continue;
    std::istringstream words(line.substr(5));
    Held held;
    words >> held.descriptors >> held.threads >> held.mappings >> held.virtual_KiB >> held.resident_KiB;
    CHECK(bool(words));
    all.push_back(held);
  }
  return all;
}

void check_steady(const std::string& what, size_t count) {
  for (const std::string transport : {"tcp", "shm"}) {
    CAPTURE(transport);
    CAPTURE(what);
    Workers workers({.world = 2,
                     .transport = transport,
                     .arguments = {what, std::to_string(count)},
                     .program = STEADY_RANK_EXE});
    for (const Ended& ended : workers.wait(-1, 250)) {
      INFO(ended.out, ended.err);
      CHECK(ended.code == 0);
      const auto held = held_by(ended);
      REQUIRE(held.size() == 2);
      CHECK(held[1].descriptors == held[0].descriptors);
      CHECK(held[1].threads == held[0].threads);
      if (sanitized) continue;  // a sanitizer keeps freed memory back for a while
      CHECK(held[1].mappings <= held[0].mappings + few_mappings);
      CHECK(held[1].virtual_KiB <= held[0].virtual_KiB + some_KiB);
      CHECK(held[1].resident_KiB <= held[0].resident_KiB + some_KiB);
    }
  }
}

}  // namespace

TEST_CASE("steady: 100 cycles and 100,000 small operations leave everything as it was") {
  check_steady("cycles", 100);
  check_steady("operations", 100'000);
}

TEST_SUITE("slow: steady") {
  TEST_CASE("steady: 1,000 cycles and a million small operations leave everything as it was") {
    check_steady("cycles", 1000);
    check_steady("operations", 1'000'000);
  }
}
