// Jobs that are killed whole, at any moment: nothing stays in /dev/shm, /tmp or the process table.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include "command.hpp"

using namespace rondo::test;

namespace {

void kill_whole_jobs(const std::string& transport, int count) {
  CAPTURE(transport);
  const auto before = shared_places();
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    Command command({RONDO_EXE, "run", "-n", "4", "--", RONDO_EXE, "bench", "all_reduce", "--transport",
                     transport, "--memory", i % 3 == 0 ? "allocated" : "private", "-b", "1M", "-e", "1M",
                     "--iterations", "100000000"});
    if (i % 2 == 0)
      REQUIRE(command.wait_for_output("4 ranks over " + transport));
    else
      ::usleep(useconds_t(20'000 * (i % 10)));  // in the middle of joining
    for (const pid_t pid : command.alive()) ::kill(pid, SIGKILL);
    const double gone = command.seconds_until_gone();
    CHECK(gone >= 0);
    CHECK(gone < 2);
  }
  CHECK(shared_places() == before);
}

}  // namespace

TEST_CASE("leftovers: 10 jobs that are killed whole leave nothing behind") {
  kill_whole_jobs("tcp", 10);
  kill_whole_jobs("shm", 10);
}

TEST_SUITE("slow: leftovers") {
  TEST_CASE("leftovers: 100 jobs that are killed whole leave nothing behind") {
    kill_whole_jobs("tcp", 100);
    kill_whole_jobs("shm", 100);
  }
}
