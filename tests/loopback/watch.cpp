// Watching processes of this machine: the right one, and none that cannot be proven to be it.
#include "bootstrap/watch.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "base/clock.hpp"
#include "base/text_file.hpp"
#include "bootstrap/person.hpp"
#include "bootstrap/process.hpp"

using namespace rondo;
using namespace rondo::bootstrap;

namespace {

Person person(uint64_t pid, uint64_t space = 1, uint64_t start = 5) {
  Person person;
  person.process = {space, pid, start};
  return person;
}

}  // namespace

TEST_CASE("watch: every rank watches the nearest before it that is another process here") {
  const std::vector<Person> alike{person(10), person(11), person(12)};
  CHECK(watched_by(0, alike) == 2u);
  CHECK(watched_by(1, alike) == 0u);
  CHECK(watched_by(2, alike) == 1u);
  Person far = person(11);
  far.boot[0] = std::byte(1);
  const std::vector<Person> mixed{person(10), far, person(12, 2), person(13), person(13), person(14, 1, 0)};
  CHECK(watched_by(0, mixed) == 4u);  // 5 has no start
  CHECK(!watched_by(1, mixed));
  CHECK(!watched_by(2, mixed));
  CHECK(watched_by(4, mixed) == 0u);  // 3 is the same process
  CHECK(!watched_by(0, {person(10)}));
}

TEST_CASE(
    "watch: the end of a process is noticed and a process that cannot be proven to be it is not watched") {
  int go[2];
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    while (::read(go[0], &byte, 1) < 0) {
    }
    ::_exit(0);
  }
  Person there = this_process();
  there.process.pid = uint64_t(child);
  asio::io_context context;
  CHECK(Watch::start(context, there, [] {}) == nullptr);  // this process's start is another
  const std::string stat = *read_text("/proc/" + std::to_string(child) + "/stat", 4096);
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  fields >> there.process.start;
  Person elsewhere = there;
  elsewhere.process.pid_namespace++;
  CHECK(Watch::start(context, elsewhere, [] {}) == nullptr);

  int ended = 0;
  const auto watch = Watch::start(context, there, [&] { ended++; });
  REQUIRE(watch);
  context.run_for(milliseconds(50));
  CHECK(ended == 0);
  REQUIRE(::write(go[1], "x", 1) == 1);
  context.restart();
  context.run_for(milliseconds(2000));
  CHECK(ended == 1);
  ::waitpid(child, nullptr, 0);
  ::close(go[0]);
  ::close(go[1]);
}
