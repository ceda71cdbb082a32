// A rank for the tests of failures: joins the job of its environment through the public face, and says when
// and how its operations end:
//   LABEL AT TOOK CODE PEER MESSAGE      AT on the monotonic clock, TOOK both in seconds; PEER -1: none
// It ends with 3 after an error, with 0 when all went well.
//   worker loop VICTIM COUNT     all-reduces until one fails, then what comes after it
//   worker exit VICTIM COUNT     the same; VICTIM exits in the middle of its second one
//   worker stop VICTIM COUNT     the same; VICTIM stops (SIGSTOP) before its fifth
//   worker fork VICTIM COUNT     the same; VICTIM has made a child that stays
//   worker late VICTIM COUNT     one all-reduce; VICTIM joins two seconds late
//   worker absent VICTIM         VICTIM never joins
//   worker abort VICTIM COUNT    a thread of VICTIM aborts; the last rank does not call
//   worker idle MS COUNT         five all-reduces, nothing for MS milliseconds, and then all-reduces until one fails
//   worker orphans VICTIM        rank 0 leaves in order and lives on; the others receive from VICTIM, which sends nothing
//   worker duplicate VICTIM US   duplicates until that fails; VICTIM is killed US microseconds after the first
//   worker unasked VICTIM COUNT  VICTIM does not call, and rank 0, which would ask it, stops in the middle of its call
//   worker exec                  runs ls on its descriptors, and goes on
//   worker child                 has a child that returns from main, and goes on
//   worker mismatch VICTIM       VICTIM's call differs in each way, each on a communicator of its own
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rondo/rondo.hpp"
#include "worker_differences.hpp"

using namespace rondo;
using std::chrono::milliseconds;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void say(const char* label, double began, const Error& error) {
  std::printf("%s %.4f %.4f %s %d %s\n", label, now(), now() - began,
              std::string(name_of(error.code)).c_str(), int(error.peer.value_or(-1)), error.message.c_str());
}

struct Part {
  std::string mode;
  Rank victim = 0;
  size_t count = 1;
};

void make_child_that_stays() {
  const pid_t child = ::fork();
  if (child == 0)
    for (;;) ::pause();
  std::printf("child %d\n", int(child));
}

// What the victim does before its n-th operation. `busy` is set while it is in one.
void misbehave(const Part& part, int n, const std::atomic<int>& busy) {
  if (part.mode == "stop" && n == 5) ::raise(SIGSTOP);
  if (part.mode == "fork" && n == 3) make_child_that_stays();
  if (part.mode == "exit" && n == 2)
    std::thread([&busy] {
      while (busy != 2) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(200));
      std::printf("leaves %.4f\n", now());
      ::_exit(7);
    }).detach();
}

// After an error every call says so at once, no signal comes of it, and the end is quick.
int after(Communicator& comm, std::vector<float>& data) {
  for (int i = 0; i < 100; i++) {
    const double began = now();
    const auto done = comm.all_reduce(std::span(data));
    if (done || now() - began > 0.5) return std::printf("a later call went on\n"), 8;
  }
  const double began = now();
  { const Communicator last = std::move(comm); }
  std::printf("destroyed %.4f\n", now() - began);
  return 3;
}

int loop(Communicator comm, const Part& part) {
  std::vector<float> data(part.count, 1.f);
  std::atomic<int> busy{0};
  for (int n = 1;; n++) {
    if (comm.rank() == part.victim) misbehave(part, n, busy);
    busy = n;
    const double began = now();
    const auto done = comm.all_reduce(std::span(data));
    if (!done) {
      say("error", began, done.error());
      return after(comm, data);
    }
    if (n == 5) std::printf("runs\n");
    if (n == 5 && part.mode == "idle") std::this_thread::sleep_for(milliseconds(part.victim));
  }
}

int finish_one(Communicator comm, const Part& part) {
  std::vector<float> data(part.count, 1.f);
  const double began = now();
  for (int i = 0; i < 20; i++) {
    std::fill(data.begin(), data.end(), 1.f);
    if (const auto done = comm.all_reduce(std::span(data)); !done)
      return say("error", began, done.error()), 3;
  }
  return std::printf("fine %g\n", double(data.back())), 0;
}

int abort_others(Communicator comm, const Part& part) {
  std::vector<float> data(part.count, 1.f);
  if (!comm.barrier()) return 6;
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(200));
    if (comm.rank() != part.victim) return;
    std::printf("aborts %.4f\n", now());
    comm.abort();
  });
  if (comm.rank() + 1 == comm.world()) std::this_thread::sleep_for(milliseconds(500));
  const double began = now();
  const auto done = comm.all_reduce(std::span(data));
  other.join();
  if (done) return std::printf("the call went on\n"), 8;
  say("error", began, done.error());
  return after(comm, data);
}

int without_rank_0(Communicator comm, const Part& part) {
  if (!comm.barrier()) return 6;
  if (comm.rank() == 0) {
    { const Communicator gone = std::move(comm); }
    return std::printf("left\n"), std::this_thread::sleep_for(milliseconds(5000)), 0;
  }
  std::printf("waits\n");
  if (comm.rank() == part.victim) return ::pause();
  std::vector<float> data(part.count, 1.f);
  const double began = now();
  const auto done = comm.recv(std::span(data), part.victim);
  if (done) return std::printf("the call went on\n"), 8;
  return say("error", began, done.error()), 3;
}

int duplicate_until_lost(Communicator comm, const Part& part) {
  if (auto first = comm.duplicate(); !first) return say("error", now(), first.error()), 3;
  if (comm.rank() == part.victim)
    std::thread([delay = std::chrono::microseconds(part.count)] {
      std::this_thread::sleep_for(delay);
      std::printf("dies %.4f\n", now());
      ::kill(::getpid(), SIGKILL);
    }).detach();
  for (std::vector<Communicator> copies;;) {
    const double began = now();
    auto copy = comm.duplicate();
    if (!copy) return say("error", began, copy.error()), 3;
    copies.push_back(std::move(*copy));
  }
}

int without_question(Communicator comm, const Part& part) {
  if (!comm.barrier()) return 6;
  if (comm.rank() == part.victim) return ::pause();
  if (comm.rank() == 0)
    std::thread([] {
      std::this_thread::sleep_for(milliseconds(300));
      ::kill(::getpid(), SIGSTOP);
    }).detach();
  std::vector<float> data(part.count, 1.f);
  const double began = now();
  const auto done = comm.all_reduce(std::span(data), Reduction::sum, {.algorithm = "direct"});
  if (done) return std::printf("the call went on\n"), 8;
  return say("error", began, done.error()), 3;
}

int list_descriptors(Communicator comm, const Part& part) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execlp("ls", "ls", "-l", "/proc/self/fd", nullptr);
    ::_exit(126);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) return 9;
  return finish_one(std::move(comm), part);
}

// The child destroys what it has inherited, as a program does that forks without thinking of its communicator.
int return_from_child(Communicator comm, const Part& part) {
  if (!comm.barrier()) return 6;
  const pid_t child = ::fork();
  if (child == 0) return 0;
  int status = 0;
  const double began = now();
  ::waitpid(child, &status, 0);
  if (status != 0 || now() - began > 1) return std::printf("the child ended with %d\n", status), 9;
  return finish_one(std::move(comm), part);
}

// Nobody leaves before the others have been told, so all communicators stay until the end.
int differ(const Part& part) {
  std::vector<Communicator> failed;
  for (const Difference& difference : differences()) {
    Options options;
    options.root = std::string(std::getenv("RONDO_ROOT")) + "-" + difference.field;
    auto comm = Communicator::from_environment(options);
    if (!comm) return say("join", now(), comm.error()), 5;
    std::vector<float> data(difference_elements, 1.f);
    auto done = comm->barrier();
    const double began = now();
    // Another rank may have gone on, and failed, before this one has left the barrier.
    if (done) done = difference.call(*comm, comm->rank() == part.victim, data);
    // A call that had ended errs at the next, or when those that it concerns have told the others.
    while (done && now() - began < 1) done = comm->barrier();
    if (done) return std::printf("%s went on\n", difference.field), 8;
    say(difference.field, began, done.error());
    failed.push_back(std::move(*comm));
  }
  std::this_thread::sleep_for(milliseconds(300));
  return 3;
}

// Destroyed in the opposite order, after main has returned.
struct Training {
  std::vector<float> data = std::vector<float>(difference_elements, 1.f);
  std::optional<Communicator> comm;
  std::optional<Work> work;
} training;

// An operation is under way when main returns, and links are still made: the victim comes a little later.
int end_with_main(Communicator comm, bool is_victim) {
  training.comm.emplace(std::move(comm));
  if (is_victim) std::this_thread::sleep_for(milliseconds(200));
  auto work = training.comm->async_all_reduce(std::span(training.data));
  if (!work) return say("call", now(), work.error()), 3;
  training.work.emplace(std::move(*work));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::setvbuf(stdout, nullptr, _IOLBF, 0);
  ::signal(SIGPIPE, SIG_DFL);
  const auto number = [&](int i) { return argc > i ? size_t(std::atoll(argv[i])) : 0; };
  const Part part{argc > 1 ? argv[1] : "loop", Rank(number(2)), std::max<size_t>(1, number(3))};
  const char* const rank = std::getenv("RONDO_RANK");
  const bool is_victim = rank != nullptr && Rank(std::atoi(rank)) == part.victim;
  if (part.mode == "mismatch") return differ(part);
  if (part.mode == "absent" && is_victim) return ::pause();
  if (part.mode == "late" && is_victim) std::this_thread::sleep_for(milliseconds(2000));
  const double began = now();
  auto comm = Communicator::from_environment();
  if (!comm) return say("join", began, comm.error()), 5;
  std::printf("joined %.4f\n", now() - began);
  if (part.mode == "late") return finish_one(std::move(*comm), part);
  if (part.mode == "halt") {  // before the first connection is made
    if (is_victim) ::raise(SIGSTOP);
    if (!is_victim) std::this_thread::sleep_for(milliseconds(500));
    return finish_one(std::move(*comm), part);
  }
  if (part.mode == "slow") {
    if (is_victim) std::this_thread::sleep_for(milliseconds(2500));
    return finish_one(std::move(*comm), part);
  }
  if (part.mode == "abort") return abort_others(std::move(*comm), part);
  if (part.mode == "orphans") return without_rank_0(std::move(*comm), part);
  if (part.mode == "duplicate") return duplicate_until_lost(std::move(*comm), part);
  if (part.mode == "unasked") return without_question(std::move(*comm), part);
  if (part.mode == "exec") return list_descriptors(std::move(*comm), part);
  if (part.mode == "static") return end_with_main(std::move(*comm), is_victim);
  if (part.mode == "child") return return_from_child(std::move(*comm), part);
  return loop(std::move(*comm), part);
}
