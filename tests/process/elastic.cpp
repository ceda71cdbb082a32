// rondo run --elastic with real processes: who fails is left behind, and what the job ends with.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include "command.hpp"

using namespace rondo::test;

namespace {

std::vector<std::string> elastic(const std::string& ranks, const std::string& script,
                                 std::vector<std::string> options = {}) {
  std::vector<std::string> words{RONDO_EXE, "run", "--elastic", "-n", ranks};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "/bin/sh", "-c", script});
  return words;
}

Ended clean_run(const std::vector<std::string>& words) {
  const auto before = shared_places();
  Command command(words);
  const Ended ended = command.wait();
  CHECK_FALSE(ended.too_late);
  CHECK(command.alive().empty());
  CHECK(shared_places() == before);
  return ended;
}

}  // namespace

TEST_CASE("run --elastic: a rank that fails is reported, and the others go on to a good end") {
  const auto killed = clean_run(elastic("4", "test $RANK = 2 && kill -9 $$; sleep 1.5; echo $RANK is well"));
  CHECK(killed.code == 0);
  CHECK(killed.err == "rondo run: rank 2 failed: signal 9 (KILL); the others go on\n");
  CHECK(lines(killed.out).size() == 3);
  CHECK(killed.seconds > 1.4);  // longer than the patience of a job that is ending
  const auto several =
      clean_run(elastic("4", "case $RANK in 0) exit 7;; 3) sleep 0.2; exit 1;; esac; sleep 0.6"));
  CHECK(several.code == 0);
  CHECK(several.err ==
        "rondo run: rank 0 failed: exit 7; the others go on\n"
        "rondo run: rank 3 failed: exit 1; the others go on\n");
}

TEST_CASE("run --elastic: when no rank is left, the code is the last one's") {
  const auto ended = clean_run(elastic("3", "sleep 0.$((1 + 2 * RANK)); exit 1$RANK"));
  CHECK(ended.code == 12);
  CHECK(lines(ended.err) ==
        std::vector<std::string>{"rondo run: rank 0 failed: exit 10; the others go on",
                                 "rondo run: rank 1 failed: exit 11; the others go on",
                                 "rondo run: rank 2 failed: exit 12",
                                 "rondo run: no rank is left; the last was rank 2: exit 12"});
}

TEST_CASE("run --elastic: a rank that has remained to the end and then fails decides the code") {
  const auto ended = clean_run(elastic(
      "4",
      "case $RANK in 0) exit 5;; 1) sleep 0.3; exit 0;; 2) sleep 0.6; exit 6;; esac; sleep 0.9; exit 7"));
  CHECK(ended.code == 6);
  CHECK(last_line(ended.err) == "rondo run: rank 2 failed after others had ended: exit 6");
}

TEST_CASE("run --elastic: what a lost rank has started goes with it, what the others have started stays") {
  Command command(
      elastic("2", "sleep 1001 & echo ready $RANK; test $RANK = 0 && sleep 0.5 && kill -9 $$; wait"));
  for (const char* text : {"ready 0", "ready 1", "rank 0 failed"}) REQUIRE(command.wait_for_output(text));
  constexpr size_t launcher = 2, rank_and_child = 2;
  for (int i = 0; i < 100 && command.alive().size() != launcher + rank_and_child; ++i) ::usleep(20'000);
  ::usleep(200'000);
  CHECK(command.alive().size() == launcher + rank_and_child);
}

TEST_CASE("run --elastic: time-out, Ctrl-C and kill -9 of the launcher end it as ever") {
  const std::string script = "test $RANK = 1 && exit 3; echo ready $RANK; sleep 1000";
  const auto late = clean_run(elastic("3", script, {"--timeout", "0.6"}));
  CHECK(late.code == 124);
  CHECK(last_line(late.err) == "rondo run: timed out after 0.6 s; ranks 0 and 2 of 3 had not ended");
  CHECK(late.seconds < 2);
  for (const int signal : {SIGINT, SIGKILL}) {
    Command command(elastic("3", script));
    for (const char* text : {"ready 0", "ready 2", "rank 1 failed"}) REQUIRE(command.wait_for_output(text));
    ::kill(command.pid(), signal);
    CHECK(command.wait(5).code == 128 + signal);
    const double seconds = command.seconds_until_gone();
    CHECK(seconds >= 0);
    CHECK(seconds < 2);
  }
}

TEST_CASE("run --elastic: a program that cannot be executed is still 127") {
  CHECK(run({RONDO_EXE, "run", "--elastic", "-n", "2", "/no/such/program"}).code == 127);
}
