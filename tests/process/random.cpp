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
