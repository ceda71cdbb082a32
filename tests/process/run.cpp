// rondo run with real processes: exit codes, last words, and that nothing ever stays.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "command.hpp"

using namespace rondo::test;

namespace {

const std::string rondo_exe = RONDO_EXE;

std::vector<std::string> run_line(const std::vector<std::string>& options, const std::string& script) {
  std::vector<std::string> words{rondo_exe, "run"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "/bin/sh", "-c", script});
  return words;
}

// Runs to the end, and checks what holds for every run: nothing left within 2 s, no name in /dev/shm or /tmp.
Ended clean_run(const std::vector<std::string>& words, const std::vector<std::string>& environment = {}) {
  const auto before = shared_places();
  Command command(words, environment);
  const Ended ended = command.wait();
  CHECK_FALSE(ended.too_late);
  CHECK(command.alive().empty());
  CHECK(shared_places() == before);
  return ended;
}

// Each rank has a child, and a grandchild that left the session and whose parent is gone.
const std::string family = "sleep 1000 & (setsid sleep 1000 &) ; echo ready $RANK; sleep 1000";

}  // namespace

TEST_CASE("run: every rank gets its place") {
  const auto ended = clean_run(
      run_line({"-n", "3"},
               "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR; test -n \"$RONDO_JOB\" && "
               "test ${#RONDO_SECRET} = 64 && test $MASTER_PORT -gt 0 && echo ${RONDO_ROOT%-*}$RONDO_RANK"),
      {"RONDO_RANK=5"});
  CHECK(ended.code == 0);
  auto out = lines(ended.out);
  std::sort(out.begin(), out.end());
  CHECK(out == std::vector<std::string>{"[0] 0 3 0 3 127.0.0.1", "[0] unix:@rondo", "[1] 1 3 1 3 127.0.0.1",
                                        "[1] unix:@rondo", "[2] 2 3 2 3 127.0.0.1", "[2] unix:@rondo"});
  CHECK(ended.err == "");
}

TEST_CASE("run: output comes in whole lines, each to its own stream, and input is empty") {
  const auto ended =
      clean_run(run_line({"-n", "2"},
                         "cat; for i in 1 2 3 4 5 6 7 8 9; do printf 'a%s' $i; sleep 0.01; printf 'b\\n'; "
                         "echo c$i >&2; done; printf end"));
  CHECK(ended.code == 0);
  const auto out = lines(ended.out), err = lines(ended.err);
  REQUIRE(out.size() == 20);
  REQUIRE(err.size() == 18);
  for (const std::string prefix : {"[0] ", "[1] "}) {
    for (int i = 1; i <= 9; ++i) {
      CHECK(std::count(out.begin(), out.end(), prefix + "a" + std::to_string(i) + "b") == 1);
      CHECK(std::count(err.begin(), err.end(), prefix + "c" + std::to_string(i)) == 1);
    }
    CHECK(std::count(out.begin(), out.end(), prefix + "end") == 1);
  }
}

TEST_CASE("run: much output is complete") {
  const auto ended = clean_run(run_line({"-n", "4"}, "seq 50000"));
  CHECK(ended.code == 0);
  CHECK(lines(ended.out).size() == 200000);
}

TEST_CASE("run: the first failure decides the code and has the last word") {
  SUBCASE("exit code") {
    const auto ended = clean_run(run_line({"-n", "4"}, "test $RANK = 2 && exit 7; sleep 1000"));
    CHECK(ended.code == 7);
    CHECK(last_line(ended.err) == "rondo run: rank 2 failed first: exit 7");
    CHECK(ended.seconds < 2);
  }
  SUBCASE("signal") {
    const auto ended = clean_run(run_line({"-n", "4"}, "test $RANK = 1 && kill -9 $$; sleep 1000"));
    CHECK(ended.code == 137);
    CHECK(last_line(ended.err) == "rondo run: rank 1 failed first: signal 9 (KILL)");
    CHECK(ended.seconds < 2);
  }
  SUBCASE("the others may still report, and their codes do not count") {
    const auto ended =
        clean_run(run_line({"-n", "3"}, "test $RANK = 0 && exit 9; sleep 0.3; echo I saw it >&2; exit 1"));
    CHECK(ended.code == 9);
    CHECK(ended.err.find("[1] I saw it") != std::string::npos);
    CHECK(ended.err.find("[2] I saw it") != std::string::npos);
    CHECK(last_line(ended.err) == "rondo run: rank 0 failed first: exit 9");
    CHECK(ended.seconds < 1);
  }
  SUBCASE("one that ignores SIGTERM and one that is stopped") {
    const auto ended = clean_run(run_line(
        {"-n", "3"},
        "trap '' TERM; test $RANK = 0 && sleep 0.2 && exit 4; test $RANK = 1 && kill -STOP $$; sleep 1000"));
    CHECK(ended.code == 4);
    CHECK(ended.seconds < 2.2);
  }
}

TEST_CASE("run: of several that the launcher finds dead together, the first is named") {
  // Rank 3 stops the launcher and ends; the others end when they have seen that; then the launcher goes on.
  // One that looks at its ranks in their own order would blame rank 0. It is stopped when it has surely begun
  // to watch them all.
  char directory[] = "/tmp/rondo-test-XXXXXX";
  REQUIRE(::mkdtemp(directory));
  const std::string pid = std::string(directory) + "/pid";
  const auto ended = clean_run(
      run_line({"-n", "4"},
               "if test $RANK = 3; then sleep 0.5; kill -STOP $PPID; (sleep 0.6; kill -CONT $PPID) & echo $$ "
               ">$PID_FILE; exit 33; fi; "
               "until test -s $PID_FILE; do sleep 0.01; done; dead=/proc/$(cat $PID_FILE)/stat; "
               "while test -e $dead && ! grep -q ') Z' $dead; do sleep 0.01; done; exit 1"),
      {"PID_FILE=" + pid});
  CHECK(ended.code == 33);
  CHECK(last_line(ended.err) == "rondo run: rank 3 failed first: exit 33");
  ::unlink(pid.c_str());
  ::rmdir(directory);
}

TEST_CASE("run: a program that cannot be executed is 127, with the reason") {
  const auto missing = clean_run({rondo_exe, "run", "-n", "2", "/no/such/program"});
  CHECK(missing.code == 127);
  CHECK(last_line(missing.err) == "rondo run: cannot run /no/such/program: No such file or directory");
  const auto not_in_path = clean_run({rondo_exe, "run", "-n", "2", "no-such-program-anywhere"});
  CHECK(not_in_path.code == 127);
  const auto no_program = clean_run({rondo_exe, "run", "-n", "2", "/etc/passwd"});
  CHECK(no_program.code == 127);
  CHECK(last_line(no_program.err) == "rondo run: cannot run /etc/passwd: Permission denied");
}

TEST_CASE("run: the timeout is 124 and says who was still at work") {
  const auto ended =
      clean_run(run_line({"-n", "3", "--timeout", "0.6"}, "test $RANK = 1 && exit 0; sleep 1000"));
  CHECK(ended.code == 124);
  CHECK(last_line(ended.err) == "rondo run: timed out after 0.6 s; ranks 0 and 2 of 3 had not ended");
  CHECK(ended.seconds > 0.55);
  CHECK(ended.seconds < 2);
}

TEST_CASE("run: wrong usage is 2") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"run"},
                                             {"run", "-n", "2"},
                                             {"run", "true"},
                                             {"run", "-n", "0", "true"},
                                             {"run", "-n", "x", "true"},
                                             {"run", "-n", "2", "--what", "true"},
                                             {"run", "-n", "2", "--timeout", "-1", "true"},
                                             {"dance"}}) {
    std::vector<std::string> line{rondo_exe};
    line.insert(line.end(), words.begin(), words.end());
    const auto ended = run(line);
    CHECK(ended.code == 2);
    CHECK(ended.err + ended.out != "");
  }
}

TEST_CASE("bench: what does not go together is refused once, before ranks are started") {
  struct Refused {
    std::vector<std::string> words;
    const char* text;
  };
  for (const Refused& refused :
       {Refused{{"broadcast", "--in-place", "no"}, "broadcast has one buffer: it is always in place"},
        Refused{{"all_to_all", "--in-place", "only"}, "all_to_all is never in place"},
        Refused{{"reduce", "--root", "2"}, "there is no rank 2 among 2 ranks"},
        Refused{{"all_reduce", "--op", "premul_sum"}, "premul_sum not in"},
        Refused{{"all_reduce", "--op", "bit_and"}, "bit_and is not defined for f32: it is for integers"}}) {
    std::vector<std::string> line{rondo_exe, "bench", "-n", "2", "-e", "8", "--iterations", "1"};
    line.insert(line.end(), refused.words.begin(), refused.words.end());
    const auto ended = run(line);
    CAPTURE(ended.err);
    CHECK(ended.code == 2);
    const size_t at = ended.err.find(refused.text);
    CHECK(at != std::string::npos);
    CHECK(ended.err.find(refused.text, at + 1) == std::string::npos);
  }
  CHECK(run({rondo_exe, "bench", "--help"}).out.find("weighted_avg") == std::string::npos);
  for (const std::vector<std::string>& fine :
       {std::vector<std::string>{"broadcast", "--in-place", "only"}, {"reduce", "--root", "1"}}) {
    std::vector<std::string> line{rondo_exe, "bench", "-n", "2", "-e", "8", "--iterations", "1"};
    line.insert(line.end(), fine.begin(), fine.end());
    CHECK(run(line).code == 0);
  }
}

TEST_CASE("run: arguments of the program stay its own") {
  const auto ended = clean_run({rondo_exe, "run", "-n", "1", "/bin/echo", "-n", "5", "--", "--timeout", "x"});
  CHECK(ended.out == "[0] 5 -- --timeout x\n");
  const auto marked = clean_run({rondo_exe, "run", "-n", "1", "--", "/bin/echo", "a", "--", "b"});
  CHECK(marked.out == "[0] a -- b\n");
}

TEST_CASE("run: a descendant that holds the output open delays nobody and does not survive") {
  const auto ended = clean_run(run_line({"-n", "2"}, "(setsid sleep 1000 &); sleep 1000 & exit 0"));
  CHECK(ended.code == 0);
  CHECK(ended.seconds < 1.5);
}

TEST_CASE("run: kill -9 of the launcher leaves nothing, descendants included") {
  const auto before = shared_places();
  Command command(run_line({"-n", "3"}, family));
  for (const char* rank : {"ready 0", "ready 1", "ready 2"}) REQUIRE(command.wait_for_output(rank));
  // The test must see what it is about to miss; a process is without an environment for a moment while it
  // starts.
  for (int i = 0; i < 100 && command.alive().size() < 3 * 4 + 2; ++i) ::usleep(20'000);
  CHECK(command.alive().size() == 3 * 4 + 2);
  ::kill(command.pid(), SIGKILL);
  CHECK(command.wait().code == 137);
  const double seconds = command.seconds_until_gone();
  CHECK(seconds >= 0);
  CHECK(seconds < 2);
  CHECK(shared_places() == before);
}

TEST_CASE("run: kill -9 of the launcher ends ranks that are stopped or ignore signals") {
  Command command(run_line({"-n", "2"}, "trap '' TERM HUP INT; echo ready $RANK; kill -STOP $$; sleep 1000"));
  for (const char* rank : {"ready 0", "ready 1"}) REQUIRE(command.wait_for_output(rank));
  ::kill(command.pid(), SIGKILL);
  command.wait();
  const double seconds = command.seconds_until_gone();
  CHECK(seconds >= 0);
  CHECK(seconds < 2);
}

TEST_CASE("run: kill -9 of the supervisor leaves nothing either") {
  Command command(run_line({"-n", "2"}, family));
  for (const char* rank : {"ready 0", "ready 1"}) REQUIRE(command.wait_for_output(rank));
  const auto found =
      run({"/bin/sh", "-c", "cat /proc/" + std::to_string(command.pid()) + "/task/*/children"});
  const pid_t supervisor = std::atoi(found.out.c_str());
  REQUIRE(supervisor > 0);
  ::kill(supervisor, SIGKILL);
  const auto ended = command.wait();
  CHECK(ended.code == 137);
  const double seconds = command.seconds_until_gone();
  CHECK(seconds >= 0);
  CHECK(seconds < 2);
}

TEST_CASE("run: signals to the launcher end the job") {
  for (const auto& [signal, name] : {std::pair(SIGINT, "2 (INT)"), std::pair(SIGTERM, "15 (TERM)")}) {
    Command command(run_line({"-n", "2"}, family));
    for (const char* rank : {"ready 0", "ready 1"}) REQUIRE(command.wait_for_output(rank));
    ::kill(command.pid(), signal);
    const auto ended = command.wait(5);
    CHECK(ended.code == 128 + signal);
    CHECK(last_line(ended.err) == std::string("rondo run: ended by signal ") + name);
    CHECK(command.alive().empty());
  }
}

TEST_CASE("run: a reader that goes away or stands still does not keep the job from ending") {
  SUBCASE("gone") {
    Command command(run_line({"-n", "2"}, "yes | head -n 300000; exit 5"));
    command.close_output();
    CHECK(command.wait().code == 5);
  }
  SUBCASE("still") {
    Command command(run_line({"-n", "2", "--timeout", "0.5"}, "yes"));
    ::usleep(1'500'000);  // nobody reads: the launcher itself cannot write
    CHECK(command.alive().size() <= 2);
    ::kill(command.pid(), SIGKILL);
    CHECK(command.seconds_until_gone() < 2);
  }
}
