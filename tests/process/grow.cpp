// Communicator::grow with real processes: three ranks and one that comes later, or does not.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "command.hpp"

using namespace rondo::test;

namespace {

using Words = std::vector<std::string>;

// Four processes, of which the last is a stranger to the job of the others.
Ended grow(const std::string& members, const std::string& newcomer, const Words& environment = {},
           bool elastic = false) {
  const std::string script = "if test $RANK = 3; then " + newcomer +
                             "; else export WORLD_SIZE=3; exec " GROWER_EXE " " + members + "; fi";
  Words command{RONDO_EXE, "run", "-n", "4", "--timeout", "40", "--", "/bin/sh", "-c", script};
  if (elastic) command.insert(command.begin() + 2, "--elastic");
  return run(command, environment, 50);
}

// With a fault; all go on as long as they can. The newcomer ends with `newcomer_code`, before or after the others do.
Ended survive(int patience_s, const std::string& fault, const char* transport, int newcomer_code = 0) {
  const std::string root = "unix:@rondo-test-grow-" + std::to_string(::getpid());
  return grow(
      "survive 1 " + std::to_string(patience_s) + " " + root,
      "RONDO_ROOT=" + root + " " GROWER_EXE " come survive; test $? = " + std::to_string(newcomer_code),
      {"RONDO_FAULT=" + fault, std::string("RONDO_TRANSPORT=") + transport}, true);
}

size_t lines_with(const Ended& ended, const std::string& text) {
  const auto all = lines(ended.out);
  return size_t(std::ranges::count_if(all, [&](const auto& line) { return line.find(text) != line.npos; }));
}

}  // namespace

TEST_CASE("grow: a newcomer that waits, or comes late, makes one communicator more, whose sums are exact") {
  const std::string root = "unix:@rondo-test-grow-" + std::to_string(::getpid());
  const std::string come = "RONDO_ROOT=" + root + " exec " GROWER_EXE " come";
  for (const std::string& newcomer : {come, "sleep 1; " + come})
    for (const char* transport : {"tcp", "shm"}) {
      CAPTURE(transport);
      const auto ended = grow("grow 1 15 " + root, newcomer, {std::string("RONDO_TRANSPORT=") + transport});
      CHECK_MESSAGE(ended.code == 0, ended.out);
      CHECK(lines_with(ended, "of 3: right") == 3);
      CHECK(lines_with(ended, "of 4: right") == 4);
      CHECK(lines_with(ended, "[3] new: rank 3 of 4: right") == 1);
    }
}

TEST_CASE("grow: without a root of its own it happens where the job has met") {
  char directory[] = "/tmp/rondo-test-XXXXXX";
  REQUIRE(::mkdtemp(directory));
  const auto ended = grow("grow 1 15", "until test -s $READY; do sleep 0.05; done; exec " GROWER_EXE " come",
                          {"READY=" + std::string(directory) + "/ready"});
  CHECK_MESSAGE(ended.code == 0, ended.out);
  CHECK(lines_with(ended, "of 4: right") == 4);
  std::filesystem::remove_all(directory);
}

TEST_CASE("grow: after a shrink, in place of rank 0, where the job has met") {
  const std::string script = "test $RANK = 3 || { export WORLD_SIZE=3; exec " GROWER_EXE
                             " lose 1 15; }; sleep 0.7; RANK=2 WORLD_SIZE=3 exec " GROWER_EXE " come";
  const auto ended = run({RONDO_EXE, "run", "--elastic", "-n", "4", "--", "/bin/sh", "-c", script}, {}, 30);
  CHECK_MESSAGE(ended.code == 0, ended.out);
  CHECK(lines_with(ended, "old: rank") == 2);
  CHECK(lines_with(ended, "of 2: right") == 2);
  CHECK(lines_with(ended, "of 3: right") == 3);
  CHECK(lines_with(ended, "[3] new: rank 2 of 3: right") == 1);
}

// Operation 2 of the old communicator is the one in which the ranks tell each other that they have joined.
TEST_CASE("grow: a rank is killed when all have met: nobody goes on with the newcomer, which is told so") {
  for (const char* transport : {"tcp", "shm"}) {
    CAPTURE(transport);
    const auto ended = survive(15, "kill@rank=1,operation=2", transport, 6);
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(lines_with(ended, "of 2: right") == 2);
    CHECK(lines_with(ended, "right") == 2);
    CHECK(lines_with(ended, "[3] cannot shrink: rank 3 of 4, shrink: ") == 1);
    CHECK(lines_with(ended, "has gone on in a new communicator without this rank, 3") == 1);
  }
}

TEST_CASE("grow: one that misses the news that all have met is told by those that have gone on") {
  const auto ended = survive(2, "drop@rank=1,operation=2,peer=2", "tcp");
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(lines_with(ended, "timeout: rank 2 of 3, operation #2 (grow)") == 1);
  CHECK(lines_with(ended, "rest: rank 2 of 3: wrong") == 1);
  CHECK(lines_with(ended, "of 4: right") == 4);
  CHECK(lines_with(ended, "right") == 4);
}

TEST_CASE("grow: a newcomer that never comes is named at the deadline, and the old communicator goes on") {
  const auto ended = grow("grow 2 1", "exit 0");
  CHECK_MESSAGE(ended.code == 0, ended.out);
  CHECK(lines_with(ended, "timeout: ") == 3);
  CHECK(lines_with(ended, "ranks 3 and 4") == 3);
  CHECK(lines_with(ended, "old: rank") == 3);
  CHECK(lines_with(ended, "of 3: right") == 3);
  for (const auto& line : lines(ended.out)) {
    if (line.find("timeout: ") == line.npos) continue;
    const double seconds = std::stod(line.substr(line.find(' ')));
    CHECK(seconds > 0.9);
    CHECK(seconds < 2);
  }
}

TEST_CASE("grow: a newcomer whose settings are wrong says so, and the old communicator goes on") {
  const std::string root = "unix:@rondo-test-grow-" + std::to_string(::getpid());
  const auto ended =
      grow("grow 1 15 " + root, "RONDO_PORTS=9-1 RONDO_ROOT=" + root + " " GROWER_EXE " come; exit 0");
  CHECK_MESSAGE(ended.code == 0, ended.out);
  CHECK(ended.seconds < 3);
  CHECK(lines_with(ended, "[3] cannot join: RONDO_PORTS=9-1") == 1);
  CHECK(lines_with(ended, "invalid_argument: rank 3 could not join: RONDO_PORTS=9-1") == 3);
  CHECK(lines_with(ended, "of 3: right") == 3);
}

TEST_CASE("grow: ranks that expect different newcomers are told who differs, and go on as they are") {
  const auto ended = grow("grow $((RANK + 1)) 5", "exit 0");
  CHECK_MESSAGE(ended.code == 0, ended.out);
  CHECK(lines_with(ended, "mismatch: grow: rank 1 expects 2 newcomers at") == 3);
  CHECK(lines_with(ended, "of 3: right") == 3);
}
