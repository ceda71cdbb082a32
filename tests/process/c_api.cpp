// The C interface, by a program in C.
#include <doctest/doctest.h>

#include "command.hpp"

using namespace rondo::test;

TEST_CASE("c_api: every function of rondo.h, over shared memory and over tcp") {
  for (const std::string transport : {"shm", "tcp"}) {
    CAPTURE(transport);
    const auto ended =
        run({RONDO_EXE, "run", "-n", "3", "--", C_API_EXE}, {"RONDO_TRANSPORT=" + transport}, 60);
    CHECK_MESSAGE(ended.code == 0, ended.err);
    const auto out = lines(ended.out);
    REQUIRE(out.size() == 3);
    // So many that no part of it can have been left out.
    for (const std::string& line : out) CHECK(std::stoi(line.substr(line.find("c_api: ") + 7)) > 200);
  }
}
