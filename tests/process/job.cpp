// Jobs of real processes that die, come too late or are not launched by rondo at all.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "../sanitized.hpp"
#include "../skip.hpp"
#include "../text.hpp"
#include "base/random.hpp"
#include "command.hpp"

using namespace rondo::test;

namespace {

Ended run_members(int ranks, std::vector<std::string> arguments,
                  const std::vector<std::string>& environment = {}) {
  std::vector<std::string> words{RONDO_EXE,   "run", "-n", std::to_string(ranks),
                                 "--timeout", "15",  "--", MEMBER_EXE};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(words, environment);
}

}  // namespace

TEST_CASE("process: the ranks of rondo run find each other") {
  const auto ended = run_members(4, {"leave"});
  CHECK(ended.code == 0);
  const auto out = lines(ended.out);
  CHECK(std::set<std::string>(out.begin(), out.end()) ==
        std::set<std::string>{"[0] joined 4", "[1] joined 4", "[2] joined 4", "[3] joined 4"});
  CHECK(ended.err == "");
}

TEST_CASE("process: a death is told to every other rank by name, rank 0's too") {
  using Death = std::tuple<int, std::string, std::string>;
  for (const auto& [rank, how, end] : {Death(2, "kill", "signal 9 (KILL)"),
                                       Death(0, "kill", "signal 9 (KILL)"), Death(1, "exit", "exit 7")}) {
    const auto ended = run_members(4, {"die", std::to_string(rank), how});
    CHECK(last_line(ended.err) == fmt::format("rondo run: rank {} failed first: {}", rank, end));
    CHECK(ended.seconds < 2);
    for (int other = 0; other < 4; ++other) {
      if (other == rank) continue;
      CAPTURE(ended.out);
      CHECK(has(ended.out, fmt::format("[{}] told: {} rank {} (pid ", other, rank, rank)));
    }
  }
}

TEST_CASE("process: a death ends what is queued on every communicator that the rank was in") {
  const auto ended = run_members(4, {"queue", "2"});
  CHECK(last_line(ended.err) == "rondo run: rank 2 failed first: signal 9 (KILL)");
  CHECK(ended.seconds < 2.5);
  for (const int other : {0, 1, 3}) {
    CAPTURE(ended.out);
    const std::string line = fmt::format("[{}] ended: peer_lost 2, aborted 19", other);
    const size_t first = ended.out.find(line);
    REQUIRE(first != std::string::npos);
    CHECK(ended.out.find(line, first + 1) != std::string::npos);
  }
}

TEST_CASE("process: a rank that never joins is named at the init timeout") {
  const auto ended = run_members(4, {"absent", "2"}, {"RONDO_INIT_TIMEOUT=3"});
  CHECK(ended.code == 5);
  CHECK(ended.seconds > 2.5);
  CHECK(ended.seconds < 3.5 + 1.5);  // the launcher's grace for the absent one comes on top
  for (const char* rank : {"[0] ", "[1] ", "[3] "})
    CHECK(has(ended.err, std::string(rank) + "not joined: rank 2 of 4 did not join within 3.0 s"));
}

TEST_CASE("process: a rank 0 without descriptors tells every rank at once") {
  const auto ended = run({RONDO_EXE, "run", "-n", "24", "--", "/bin/sh", "-c",
                          "[ $RANK = 0 ] && ulimit -n 24; exec " MEMBER_EXE " wait"},
                         {"RONDO_INIT_TIMEOUT=15"});
  CHECK(ended.code == 5);
  CHECK(ended.seconds < 5);
  size_t told = 0;
  for (const auto& line : lines(ended.err)) {
    CAPTURE(line);
    if (!has(line, "not joined: ")) continue;
    told++;
    CHECK(has(line, "rank 0 has run out of file descriptors"));
    CHECK(has(line, "ulimit -n is 24; 24 ranks need about 72"));
  }
  CHECK(told == 24);
}

TEST_CASE("process: a rank that has no descriptor to connect with says so at once") {
  const auto ended = run({RONDO_EXE, "run", "-n", "2", "--", "/bin/sh", "-c",
                          "[ $RANK = 1 ] && exec " MEMBER_EXE " exhausted; exec " MEMBER_EXE " wait"},
                         {"RONDO_INIT_TIMEOUT=15"});
  CHECK(ended.code == 5);
  CHECK(ended.seconds < 5);
  CAPTURE(ended.err);
  CHECK(has(ended.err, "[1] not joined: rank 1 cannot connect to rank 0: cannot make a socket for unix:@"));
  CHECK(has(ended.err, "Too many open files; ulimit -n is 64"));
}

TEST_CASE(
    "process: however few descriptors a process has, joining alone is an error or works, never an abort") {
  int errors = 0;
  for (int limit = 6; limit <= 14; ++limit) {
    CAPTURE(limit);
    const auto ended = run({"/bin/sh", "-c", fmt::format("ulimit -n {}; exec " MEMBER_EXE " alone", limit)},
                           {"RONDO_RANK=0", "RONDO_WORLD=1"});
    CAPTURE(ended.err);
    CHECK(ended.code < 128);
    if (ended.code == 0) continue;
    ++errors;
    CHECK(has(ended.err, fmt::format("ulimit -n is {}", limit)));
  }
  CHECK(errors > 2);
}

TEST_CASE(
    "process: a rank without descriptors for the exchange of memory says so, long before the init timeout") {
  bool ran_out = false;
  for (int limit = 14; limit <= 24; ++limit) {
    CAPTURE(limit);
    const auto ended = run({RONDO_EXE, "run", "-n", "3", "--", "/bin/sh", "-c",
                            fmt::format("[ $RANK = 1 ] && ulimit -n {}; exec " MEMBER_EXE " alone", limit)},
                           {"RONDO_INIT_TIMEOUT=20", "RONDO_TRANSPORT=shm"});
    CAPTURE(ended.err);
    CHECK(ended.seconds < 6);
    if (ended.code != 0) CHECK(has(ended.err, "ulimit -n"));
    ran_out = ran_out || has(ended.err, "it has run out of file descriptors: ulimit -n is");
  }
  CHECK(ran_out);
}

TEST_CASE("process: a rank that has no descriptor for a data connection tells every rank so") {
  const auto ended = run({RONDO_EXE, "run", "-n", "3", "--", MEMBER_EXE, "short", "2"},
                         {"RONDO_INIT_TIMEOUT=15", "RONDO_TIMEOUT=15", "RONDO_TRANSPORT=tcp"});
  CHECK(ended.code == 6);
  CHECK(ended.seconds < 6);
  CAPTURE(ended.err);
  for (const char* rank : {"[0] ", "[1] ", "[2] "})
    CHECK(std::ranges::any_of(lines(ended.err), [&](const std::string& line) {
      return line.starts_with(rank) && has(line, "rank 2 has run out of file descriptors") &&
             has(line, "ulimit -n is 64");
    }));
}

TEST_CASE("process: memory that runs out while joining is an error, and never an abort") {
  if (sanitized) SKIP_TEST("a sanitizer reserves terabytes of addresses");
  int errors = 0;
  for (int kilobytes = 22000; kilobytes <= 40000; kilobytes += 1500) {
    CAPTURE(kilobytes);
    const auto ended =
        run({RONDO_EXE, "run", "-n", "2", "--", "/bin/sh", "-c",
             fmt::format("ulimit -v {}; exec {} bench all_reduce -e 8 --iterations 2", kilobytes, RONDO_EXE)},
            {"RONDO_INIT_TIMEOUT=2", "RONDO_TIMEOUT=2"});
    CAPTURE(ended.err);
    CHECK(ended.code < 128);
    CHECK(ended.seconds < 8);  // either deadline, where a step of the service thread is lost
    errors += has(ended.err, "could not join: memory has run out");
  }
  CHECK(errors > 0);
}

TEST_CASE("process: torchrun's variables are enough on one machine") {
  const std::string port = std::to_string(20000 + rondo::random_number() % 10000);
  const auto environment = [&](int rank) {
    return std::vector<std::string>{"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                                    "MASTER_PORT=" + port};
  };
  Command zero({MEMBER_EXE, "leave"}, environment(0)), one({MEMBER_EXE, "leave"}, environment(1));
  CHECK(zero.wait().code == 0);
  CHECK(one.wait().code == 0);
}

TEST_CASE("process: a wrong environment is said before anything is tried") {
  const auto ended = run({MEMBER_EXE}, {"RANK=0", "WORLD_SIZE=2", "RONDO_INIT_TIMEOUT=abc"});
  CHECK(ended.code == 4);
  CHECK(has(ended.err, "RONDO_INIT_TIMEOUT=abc"));
  CHECK(ended.seconds < 1);
}
