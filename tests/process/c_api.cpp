// The C interface, by a program in C.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "command.hpp"

using namespace rondo::test;

namespace {

std::string text_of(const std::string& page) {
  std::ifstream file(RONDO_SOURCE_ROOT "/" + page);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> all;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) all.insert((*at)[1]);
  return all;
}

}  // namespace

TEST_CASE("c_api: the program calls every function that rondo.h has, operations with a work too") {
  const auto functions = matches(text_of("include/rondo/rondo.h"), R"(\n[a-z][^\n*/]*?[ *](rondo_\w+)\()");
  const std::string program = text_of("tests/c_api/c_api.c") + text_of("tests/c_api/c_api_errors.c");
  const auto called = matches(program, R"(\b(rondo_\w+)\()"), run = matches(program, R"(\bRUN\((\w+),)");
  CHECK(functions.size() > 50);
  for (const std::string& function : functions) {
    std::string operation = function.substr(6);
    if (operation.starts_with("async_")) operation = operation.substr(6);
    CHECK_MESSAGE((called.count(function) == 1 || run.count(operation) == 1), function);
  }
}

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
