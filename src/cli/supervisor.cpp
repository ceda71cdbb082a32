#include "cli/supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/clock.hpp"
#include "bootstrap/person.hpp"
#include "cli/output.hpp"
#include "cli/processes.hpp"
#include "cli/rank_environment.hpp"

namespace rondo::cli {
namespace {

// After the first failure the others may report what they noticed, then they are asked to end, then they are
// killed. All that, and the sweep, must fit into the two seconds within which everything is gone.
constexpr milliseconds report_grace{700}, end_grace{500}, sweep_patience{1500};
constexpr milliseconds signal_overrules{30};
constexpr int exit_timeout = 124, exit_not_executable = 127, exit_no_process = 1;

std::string describe_end(int status) {
  if (WIFEXITED(status)) return fmt::format("exit {}", WEXITSTATUS(status));
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return fmt::format("signal {} ({})", WTERMSIG(status), name ? name : "?");
}
int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// abort() is how many programs react to an error.
bool is_cause(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) != SIGABRT && WTERMSIG(status) != SIGPIPE;
}

enum class Source : uint32_t { lifeline, signal, end_of_rank, pipe, outlet };

class Supervisor {
 public:
  Supervisor(const LaunchSpec& spec, Descriptor lifeline, const sigset_t& signals, const sigset_t& mask)
      : spec_(spec),
        lifeline_(std::move(lifeline)),
        signals_(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)),
        mask_(mask),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

  int run() {
    watch(lifeline_.get(), Source::lifeline, 0);
    watch(signals_.get(), Source::signal, 0);
    if (spec_.timeout) timeout_ = deadline_after(*spec_.timeout);
    start_ranks();
    while (running_ > 0 && stage_ != Stage::kill) {
      wait_for_events();
      advance();
    }
    drain();
    if (!sweep_descendants(sweep_patience, [&](pid_t pid, int status) { reaped(pid, status); }))
      last_words_ += fmt::format("{}: some processes could not be killed\n", spec_.name);
    drain();
    finish_output();
    return code_;
  }

 private:
  struct RankProcess {
    Started process;
    bool ended = false;
  };
  struct Pipe {
    Descriptor fd;
    LineRelay relay;
    bool paused = false;
  };
  // Each lasts until its deadline.
  enum class Stage : uint8_t { run, report, end, kill };

  void watch(int fd, Source source, size_t index, uint32_t events = EPOLLIN) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = uint64_t(source) << 32 | index;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  void start_ranks() {
    const JobNames names = make_job_names();
    for (uint32_t rank = 0; rank < spec_.ranks; ++rank) {
      auto process = start({spec_.command, rank_environment(spec_, names, rank), mask_});
      if (!process)
        return end_job(Stage::kill, exit_no_process,
                       fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)));
      if (process->exec_error != 0)
        return end_job(
            Stage::kill, exit_not_executable,
            fmt::format("cannot run {}: {}", spec_.command.front(), std::strerror(process->exec_error)));
      const std::string prefix = spec_.prefix_output ? fmt::format("[{}] ", rank) : std::string();
      add_pipe(std::move(process->output), {prefix, output_});
      add_pipe(std::move(process->errors), {prefix, errors_});
      watch(process->handle.get(), Source::end_of_rank, rank);
      ranks_.push_back({std::move(*process)});
      ++running_;
    }
  }

  void add_pipe(Descriptor fd, LineRelay relay) {
    watch(fd.get(), Source::pipe, pipes_.size());
    pipes_.push_back({std::move(fd), std::move(relay)});
  }

  // ---- Events. epoll lists what became ready in the order in which it did, so the first rank to end is seen
  // first.

  void wait_for_events() {
    std::array<epoll_event, 64> events;
    const int timeout = deadline() ? milliseconds_until(*deadline()) : -1;
    const int count = ::epoll_wait(epoll_.get(), events.data(), int(events.size()), timeout);
    for (int i = 0; i < count; ++i) {
      const size_t index = events[size_t(i)].data.u64 & 0xffffffff;
      switch (Source(events[size_t(i)].data.u64 >> 32)) {
        case Source::lifeline:
          front_gone();
          break;
        case Source::signal:
          signalled();
          break;
        case Source::end_of_rank:
          rank_ended(index);
          break;
        case Source::pipe:
          read_pipe(pipes_[index]);
          break;
        case Source::outlet:
          break;  // pumped below
      }
    }
    for (Outlet* outlet : {&output_, &errors_}) pump(*outlet);
  }

  std::optional<TimePoint> deadline() const {
    return stage_ == Stage::run ? timeout_ : std::optional(stage_ends_);
  }

  void front_gone() {
    unwatch(lifeline_.get());
    front_gone_ = true;
    end_job(Stage::end, 128 + SIGKILL, "");
  }

  void signalled() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
      const int signal = int(info.ssi_signo);
      if (signal == SIGCHLD)
        reap_adopted();
      else if (stage_ == Stage::end)
        stage_ = Stage::kill;  // asked twice: no more patience
      else
        end_job(Stage::end, 128 + signal,
                fmt::format("ended by signal {} ({})", signal, ::sigabbrev_np(signal)));
    }
  }

  // Descendants whose parents are gone. Ranks are left to rank_ended, which sees them in the right order.
  void reap_adopted() {
    for (const Process& process : descendants()) {
      if (process.parent != ::getpid() || !process.zombie) continue;
      bool is_rank = false;
      for (const RankProcess& rank : ranks_)
        is_rank = is_rank || (!rank.ended && rank.process.pid == process.pid);
      if (!is_rank) ::waitpid(process.pid, nullptr, WNOHANG);
    }
  }

  void rank_ended(size_t rank) {
    int status = 0;
    const pid_t pid = ranks_[rank].process.pid;
    if (::waitpid(pid, &status, WNOHANG) == pid) reaped(pid, status);
  }

  void reaped(pid_t pid, int status) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].process.pid != pid || ranks_[rank].ended) continue;
      ranks_[rank].ended = true;
      unwatch(ranks_[rank].process.handle.get());
      ranks_[rank].process.handle = Descriptor();
      --running_;
      if (code_of(status) != 0) failed(rank, status);
    }
  }

  // A rank that is killed closes its connections just before its end can be seen here. One that notices and
  // exits may then seem to have been first: a signal that comes within a moment of an exit is the cause.
  void failed(size_t rank, int status) {
    const auto now = Clock::now();
    const bool overrules = exit_named_at_ && now < *exit_named_at_ + signal_overrules && is_cause(status);
    if (overrules) ending_ = false;
    if (!ending_ && WIFEXITED(status)) exit_named_at_ = now;
    if (overrules) exit_named_at_.reset();
    end_job(Stage::report, code_of(status),
            fmt::format("rank {} failed first: {}", rank, describe_end(status)));
  }

  // ---- The end. The first reason counts; a later one can only hurry it.

  void end_job(Stage stage, int code, const std::string& reason) {
    if (!ending_) {
      ending_ = true;
      code_ = code;
      if (!reason.empty()) last_words_ = fmt::format("{}: {}\n", spec_.name, reason);
    }
    if (stage > stage_) enter(stage);
  }

  void enter(Stage stage) {
    stage_ = stage;
    switch (stage) {
      case Stage::run:
      case Stage::kill:
        break;
      case Stage::report:
        stage_ends_ = deadline_after(report_grace);
        break;
      case Stage::end:
        stage_ends_ = deadline_after(end_grace);
        for (const RankProcess& rank : ranks_)
          if (!rank.ended) ::kill(-rank.process.pid, SIGTERM);
        break;
    }
  }

  void advance() {
    const auto until = deadline();
    if (!until || Clock::now() < *until) return;
    switch (stage_) {
      case Stage::run:
        return timed_out();
      case Stage::report:
        return enter(Stage::end);
      case Stage::end:
        return enter(Stage::kill);
      case Stage::kill:
        return;
    }
  }

  void timed_out() {
    std::vector<uint32_t> waiting;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      if (!ranks_[rank].ended) waiting.push_back(rank);
    end_job(Stage::end, exit_timeout,
            fmt::format("timed out after {} s; {} had not ended", double(spec_.timeout->count()) / 1000,
                        bootstrap::list_of(waiting, spec_.ranks)));
  }

  // ---- Output.

  void read_pipe(Pipe& pipe) {
    std::array<char, 65536> buffer;
    const ssize_t count = pipe.fd ? ::read(pipe.fd.get(), buffer.data(), buffer.size()) : -1;
    if (count > 0) {
      pipe.relay.feed({buffer.data(), size_t(count)});
      if (!pipe.relay.outlet().full()) return;
      unwatch(pipe.fd.get());
      pipe.paused = true;
    } else if (pipe.fd && (count == 0 || errno != EAGAIN)) {
      pipe.relay.finish();
      unwatch(pipe.fd.get());
      pipe.fd = Descriptor();
    }
  }

  void pump(Outlet& outlet) {
    const bool was_blocked = outlet.fd() == STDOUT_FILENO ? output_blocked_ : errors_blocked_;
    outlet.pump();
    bool& blocked = outlet.fd() == STDOUT_FILENO ? output_blocked_ : errors_blocked_;
    blocked = !outlet.empty();
    if (blocked && !was_blocked) watch(outlet.fd(), Source::outlet, 0, EPOLLOUT);
    if (!blocked && was_blocked) unwatch(outlet.fd());
    if (outlet.full()) return;
    for (size_t i = 0; i < pipes_.size(); ++i)
      if (pipes_[i].paused && &pipes_[i].relay.outlet() == &outlet) {
        pipes_[i].paused = false;
        watch(pipes_[i].fd.get(), Source::pipe, i);
      }
  }

  // What is in the pipes now; a descendant that holds one open does not make this wait.
  void drain() {
    for (Pipe& pipe : pipes_) {
      std::array<char, 65536> buffer;
      ssize_t count = 0;
      for (int i = 0; i < 64 && pipe.fd && (count = ::read(pipe.fd.get(), buffer.data(), buffer.size())) > 0;
           ++i)
        pipe.relay.feed({buffer.data(), size_t(count)});
    }
  }

  // Nothing runs any more, so there is time, unless the user wants the end too.
  void finish_output() {
    for (Pipe& pipe : pipes_) pipe.relay.finish();
    output_.pump();
    const auto wanted = [&] { return !front_gone_ && !(output_.empty() && errors_.empty()); };
    std::array<pollfd, 4> ready{{{lifeline_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {}, {}}};
    const auto wait = [&] {
      ready[2] = {output_.empty() ? -1 : output_.fd(), POLLOUT, 0};
      ready[3] = {errors_.empty() ? -1 : errors_.fd(), POLLOUT, 0};
      ::poll(ready.data(), ready.size(), -1);
      output_.pump();
      errors_.pump();
      signalfd_siginfo info{};
      while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo != SIGCHLD) front_gone_ = true;
      if (ready[0].revents != 0) front_gone_ = true;
    };
    errors_.pump();
    while (wanted()) wait();
    errors_.write(last_words_);
    errors_.pump();
    while (wanted()) wait();
  }

  const LaunchSpec& spec_;
  const Descriptor lifeline_, signals_;
  const sigset_t mask_;
  const Descriptor epoll_;
  std::optional<TimePoint> timeout_;
  Outlet output_{STDOUT_FILENO}, errors_{STDERR_FILENO};
  bool output_blocked_ = false, errors_blocked_ = false;
  std::vector<RankProcess> ranks_;
  std::deque<Pipe> pipes_;  // two per rank
  size_t running_ = 0;
  Stage stage_ = Stage::run;
  TimePoint stage_ends_{};
  std::optional<TimePoint> exit_named_at_;  // when a rank's exit became the reason of the end
  bool ending_ = false, front_gone_ = false;
  int code_ = 0;
  std::string last_words_;
};

}  // namespace

int supervise(const LaunchSpec& spec, Descriptor lifeline, const sigset_t& signals, const sigset_t& mask) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  return Supervisor(spec, std::move(lifeline), signals, mask).run();
}

}  // namespace rondo::cli
