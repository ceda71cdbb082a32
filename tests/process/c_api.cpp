// The C interface, by a program in C.
#include <doctest/doctest.h>

#include "command.hpp"

using namespace rondo::test;

TEST_CASE("c_api: every function of rondo.h, over shared memory, over tcp and around a ring") {
  for (const std::string setting : {"RONDO_TRANSPORT=shm", "RONDO_TRANSPORT=tcp", "RONDO_ALGORITHM=ring"}) {
    CAPTURE(setting);
    const auto ended = run({RONDO_EXE, "run", "-n", "3", "--", C_API_EXE}, {setting}, 60);
    CHECK_MESSAGE(ended.code == 0, ended.err);
    const auto out = lines(ended.out);
    REQUIRE(out.size() == 3);
    // So many that no part of it can have been left out.
    for (const std::string& line : out) CHECK(std::stoi(line.substr(line.find("c_api: ") + 7)) > 200);
  }
}
