#include "cli/supervisor.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "bootstrap/person.hpp"
#include "cli/processes.hpp"
#include "cli/rank_environment.hpp"
#include "cli/streams.hpp"
#include "cli/verdict.hpp"
#include "cli/watch.hpp"

namespace rondo::cli {
namespace {

// After the first failure the others may report what they noticed, then they are asked to end, then they are
// killed. All that, and the sweep, must fit into the two seconds within which everything is gone.
constexpr milliseconds report_grace{700}, end_grace{500}, sweep_patience{1500};
constexpr int exit_timeout = 124, exit_not_executable = 127, exit_no_process = 1;

class Supervisor {
 public:
  Supervisor(const LaunchSpec& spec, Descriptor lifeline, const sigset_t& signals, const sigset_t& mask)
      : spec_(spec),
        lifeline_(std::move(lifeline)),
        signals_(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)),
        mask_(mask),
        verdict_(spec.name) {}

  int run() {
    watch_.add(lifeline_.get(), Source::lifeline, 0);
    watch_.add(signals_.get(), Source::signal, 0);
    if (spec_.timeout) timeout_ = deadline_after(*spec_.timeout);
    start_ranks();
    while (running_ > 0 && stage_ != Stage::kill) {
      wait_for_events();
      advance();
    }
    if (spec_.elastic && stage_ == Stage::run) survival_.conclude(verdict_);
    streams_.drain();
    if (!sweep_descendants(sweep_patience, [&](pid_t pid, int status) { reaped(pid, status); }))
      verdict_.add("some processes could not be killed");
    streams_.drain();
    streams_.finish(verdict_.last_words(), lifeline_.get(), signals_.get(), front_gone_);
    return verdict_.code();
  }

 private:
  struct RankProcess {
    Started process;
    bool ended = false;
  };
  // Each lasts until its deadline.
  enum class Stage : uint8_t { run, report, end, kill };

  void start_ranks() {
    const JobNames names = make_job_names();
    for (uint32_t rank = 0; rank < spec_.ranks; ++rank) {
      auto process = start({spec_.command, rank_environment(spec_, names, rank), mask_});
      const int cause = errno;
      if (!process)
        return end_job(
            Stage::kill, exit_no_process,
            fmt::format("cannot start rank {}: {}{}", rank, std::strerror(cause), limit_behind(cause)));
      if (process->exec_error != 0)
        return end_job(
            Stage::kill, exit_not_executable,
            fmt::format("cannot run {}: {}", spec_.command.front(), std::strerror(process->exec_error)));
      const std::string prefix = spec_.prefix_output ? fmt::format("[{}] ", rank) : std::string();
      streams_.add(*process, prefix);
      watch_.add(process->handle.get(), Source::end_of_rank, rank);
      ranks_.push_back({std::move(*process)});
      ++running_;
    }
  }

  // ---- Events. epoll lists what became ready in the order in which it did, so the first rank to end is seen
  // first.

  void wait_for_events() {
    watch_.wait(deadline() ? milliseconds_until(*deadline()) : -1, [this](Source source, size_t index) {
      switch (source) {
        case Source::lifeline:
          return front_gone();
        case Source::signal:
          return signalled();
        case Source::end_of_rank:
          return rank_ended(index);
        case Source::pipe:
          return streams_.read(index);
        case Source::outlet:
          return;  // pumped below
      }
    });
    streams_.pump();
  }

  std::optional<TimePoint> deadline() const {
    return stage_ == Stage::run ? timeout_ : std::optional(stage_ends_);
  }

  void front_gone() {
    watch_.remove(lifeline_.get());
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
    const pid_t pid = ranks_[rank].process.pid;
    siginfo_t end{};
    ::waitid(P_PID, id_t(pid), &end, WEXITED | WNOWAIT | WNOHANG);
    // What a lost rank leaves behind would go on with it. Until it is reaped its number is its own.
    if (spec_.elastic && end.si_pid == pid && end.si_status != 0) ::kill(-pid, SIGKILL);
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) reaped(pid, status);
  }

  void reaped(pid_t pid, int status) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].process.pid != pid || ranks_[rank].ended) continue;
      ranks_[rank].ended = true;
      watch_.remove(ranks_[rank].process.handle.get());
      ranks_[rank].process.handle = Descriptor();
      --running_;
      ended(rank, status);
    }
  }

  void ended(size_t rank, int status) {
    if (spec_.elastic && stage_ == Stage::run) {
      const std::string words = survival_.ended(rank, status, running_);
      if (!words.empty()) streams_.say(fmt::format("{}: {}\n", spec_.name, words));
    } else if (code_of(status) != 0) {
      verdict_.rank_failed(rank, status);
      if (stage_ < Stage::report) enter(Stage::report);
    }
  }

  // ---- The end. The first reason counts; a later one can only hurry it.

  void end_job(Stage stage, int code, const std::string& reason) {
    verdict_.settle(code, reason);
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

  const LaunchSpec& spec_;
  const Descriptor lifeline_, signals_;
  const sigset_t mask_;
  Watch watch_;
  Streams streams_{watch_};
  std::optional<TimePoint> timeout_;
  std::vector<RankProcess> ranks_;
  size_t running_ = 0;
  Stage stage_ = Stage::run;
  TimePoint stage_ends_{};
  bool front_gone_ = false;
  Survival survival_;  // of an elastic job
  Verdict verdict_;
};

}  // namespace

int supervise(const LaunchSpec& spec, Descriptor lifeline, const sigset_t& signals, const sigset_t& mask) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  return Supervisor(spec, std::move(lifeline), signals, mask).run();
}

}  // namespace rondo::cli
