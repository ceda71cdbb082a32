// 2,000 random sequences of operations against a one-process model.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "command.hpp"

using namespace rondo::test;

TEST_CASE("random programs: 2,000 sequences of operations give what a model gives") {
  const char* given = std::getenv("RONDO_TEST_SEED");  // to repeat a run that went wrong
  const std::string seed = given != nullptr ? given : std::to_string(std::time(nullptr));
  MESSAGE("RONDO_TEST_SEED=" << seed);
  int first = 0;
  for (const char* transport : {"tcp", "shm"}) {
    for (const int world : {2, 3, 5, 8}) {
      const auto ended = run({RONDO_EXE, "run", "-n", std::to_string(world), "--", RANDOM_EXE, seed,
                              std::to_string(first), "250"},
                             {fmt::format("RONDO_TRANSPORT={}", transport)}, 100);
      CHECK_MESSAGE(ended.code == 0, (ended.out + ended.err));
      first += 250;
    }
  }
}

TEST_CASE("random programs: one wrong byte on a link is found, and told with the seed and the operation") {
  for (const char* transport : {"tcp", "shm"}) {
    std::string faults = "corrupt@rank=1,operation=40";  // some of these send nothing, or nothing that counts
    for (int operation = 41; operation < 60; operation++)
      faults += fmt::format(";corrupt@rank=1,operation={}", operation);
    const auto ended = run({RONDO_EXE, "run", "-n", "3", "--", RANDOM_EXE, "4711", "0", "250"},
                           {fmt::format("RONDO_TRANSPORT={}", transport), "RONDO_FAULT=" + faults}, 100);
    CHECK(ended.code == 1);
    CHECK_MESSAGE(ended.out.find("seed 4711 sequence ") != std::string::npos, (ended.out + ended.err));
    CHECK_MESSAGE(ended.out.find(" wrong\n") != std::string::npos, (ended.out + ended.err));
  }
}
