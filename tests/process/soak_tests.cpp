// A short soak of failures, so that the program works on the day when it is needed for longer.
#include <doctest/doctest.h>

#include "../text.hpp"
#include "command.hpp"

using namespace rondo::test;

TEST_CASE("soak: ranks die and abort among random operations, and nothing wrong, late or left comes of it") {
  // A job takes some seconds: one over each transport.
  const auto ended = run({SOAK_EXE, "4"}, {}, 100);
  MESSAGE(ended.out);
  CHECK_MESSAGE(ended.code == 0, ended.err);
  CHECK(has(last_line(ended.out), ": 0 wrong values, 0 hangs, 0 leaks, 0 wrong or late errors"));
  CHECK(!has(ended.out, ", 0 kills"));
}
