// A rank for the process tests: joins the job of its environment and says what happens to it.
//   member wait             until it is told of a failure (exit 3), 10 s at most (exit 0)
//   member leave            leaves at once
//   member die RANK HOW     as wait, but RANK ends after 200 ms: "kill" by SIGKILL, "exit" with 7 without
//   leaving
//   member stop RANK        RANK stops (SIGSTOP) when it is to share its memory
//   member absent RANK      as wait, but RANK never joins
//   member queue RANK       queues operations on a communicator and its duplicate, and says how they ended
//   (exit 3); RANK kills itself instead
//   member exhausted        as wait, but with every descriptor in use before it joins
//   member short RANK       all-reduces once, RANK with every descriptor in use after it has joined
//   member alone            joins and leaves, with shared memory
//   member without_pulls PROGRAM ARGS   runs the program, which must not read the memory of other processes
//   member split            makes a communicator led by each of the ranks, and says how many are in it
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "base/environment.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/service.hpp"
#include "rondo/rondo.hpp"

using namespace rondo;

namespace {

// Does what a transport does in the exchange of memory, without looking at it.
class Sharer : public bootstrap::Sharing {
 public:
  explicit Sharer(Rank stopping) : stopping_(stopping) {}
  Result<int> begin(Rank rank, uint32_t, uint64_t) noexcept override {
    if (rank == stopping_) ::raise(SIGSTOP);
    memory_ = Descriptor(::memfd_create("test", MFD_CLOEXEC));
    return memory_.get();
  }
  Result<void> attach(Rank, Descriptor) noexcept override { return {}; }
  Result<void> check(Rank) noexcept override { return {}; }
  Result<void> confirm(Rank) noexcept override { return {}; }
  void end(bool) noexcept override {}

 private:
  const Rank stopping_;
  Descriptor memory_;
};

class Teller : public bootstrap::Handler {
 public:
  std::optional<Sharer> sharer;
  bootstrap::Sharing* sharing() noexcept override { return sharer ? &*sharer : nullptr; }
  void connected(Rank, uint16_t, Result<Stream>) noexcept override {}
  void failed(const Error& error) noexcept override { failure_.set_value(error); }
  std::future<Error> failure() { return failure_.get_future(); }

 private:
  std::promise<Error> failure_;
};

int wait_for_failure(std::future<Error> failure) {
  if (failure.wait_for(std::chrono::seconds(10)) != std::future_status::ready) return 0;
  const Error error = failure.get();
  std::printf("told: %d %s\n", int(error.peer.value_or(999)), error.message.c_str());
  return 3;
}

// The filter outlives the exec.
int without_pulls(char** program) {
  sock_filter steps[]{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(steps), steps};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0)
    ::execvp(program[0], program);
  std::perror(program[0]);
  return 127;
}

// Nobody waits for the operations: the service thread learns of the death and ends them all.
int queue_operations(Rank victim) {
  auto joined = Communicator::from_environment();
  if (!joined) return 5;
  auto twin = joined->duplicate();
  if (!twin) return 6;
  if (joined->rank() == victim) {
    std::this_thread::sleep_for(milliseconds(200));
    ::kill(::getpid(), SIGKILL);
  }
  for (Communicator* each : {&*joined, &*twin}) {
    std::vector<std::vector<float>> data(20, std::vector<float>(100'000, 1.f));
    std::vector<Work> works;
    for (auto& vector : data) works.push_back(*each->async_all_reduce(std::span(vector)));
    const TimePoint give_up = deadline_after(milliseconds(10'000));
    while (!works.back().test() && Clock::now() < give_up) std::this_thread::sleep_for(milliseconds(1));
    const auto first = works.front().error();
    if (!first) return 7;
    const auto aborted = std::count_if(works.begin(), works.end(), [](const Work& work) {
      return work.error() && work.error()->code == ErrorCode::aborted;
    });
    std::printf("ended: %s %d, aborted %d\n", std::string(name_of(first->code)).c_str(),
                int(first->peer.value_or(999)), int(aborted));
  }
  return 3;
}

void use_all_descriptors() {
  const rlimit few{64, 64};
  ::setrlimit(RLIMIT_NOFILE, &few);
  while (::dup(STDOUT_FILENO) >= 0) {
  }
}

int join_and_leave() {
  auto joined = Communicator::from_environment();
  if (!joined) return std::fprintf(stderr, "%s\n", joined.error().message.c_str()), 5;
  return 0;
}

int connect_without_descriptors(Rank chosen) {
  auto joined = Communicator::from_environment();
  if (!joined) return std::fprintf(stderr, "%s\n", joined.error().message.c_str()), 5;
  if (joined->rank() == chosen) use_all_descriptors();
  std::vector<float> data(1000, 1.f);
  if (const auto done = joined->all_reduce(std::span(data)); !done)
    return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 6;
  return 0;
}

int split_for_each_leader() {
  auto joined = Communicator::from_environment();
  if (!joined) return std::fprintf(stderr, "%s\n", joined.error().message.c_str()), 5;
  for (Rank leader = 0; leader < joined->world(); leader++) {
    auto part = joined->split(0, joined->rank() == leader ? 0 : 1);
    if (!part) return std::fprintf(stderr, "%s\n", part.error().message.c_str()), 6;
    std::vector<int32_t> ones(1000, 1);
    if (auto done = (*part)->all_reduce(std::span(ones)); !done)
      return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 7;
    if (joined->rank() == leader && (*part)->rank() == 0)
      std::printf("led by %u: the ranks are %d\n", leader, ones[999]);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "wait";
  const Rank chosen = argc > 2 ? Rank(std::atoi(argv[2])) : 999;
  ::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (mode == "without_pulls") return without_pulls(argv + 2);
  if (mode == "queue") return queue_operations(chosen);
  if (mode == "alone") return join_and_leave();
  if (mode == "short") return connect_without_descriptors(chosen);
  if (mode == "split") return split_for_each_leader();
  const auto options = resolve({}, process_environment);
  if (!options) return std::fprintf(stderr, "%s\n", options.error().message.c_str()), 4;
  if (mode == "absent" && options->rank == chosen) return ::pause();
  // The service thread's own are there already.
  const auto service = bootstrap::Service::instance();
  if (mode == "exhausted") use_all_descriptors();
  Teller teller;
  if (mode == "stop") teller.sharer.emplace(chosen);
  auto failure = teller.failure();
  auto job = bootstrap::Job::join(*options, {}, service, teller);
  if (!job) return std::fprintf(stderr, "not joined: %s\n", job.error().message.c_str()), 5;
  std::printf("joined %u\n", (*job)->local_world());
  if (mode == "leave") return 0;
  if (mode == "die" && (*job)->rank() == chosen) {
    std::this_thread::sleep_for(milliseconds(200));
    if (std::strcmp(argv[3], "kill") == 0) ::kill(::getpid(), SIGKILL);
    ::_exit(7);
  }
  return wait_for_failure(std::move(failure));
}
