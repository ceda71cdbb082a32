#include "cli/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/limits.hpp"
#include "cli/processes.hpp"
#include "cli/supervisor.hpp"

namespace rondo::cli {
namespace {

constexpr std::chrono::milliseconds sweep_patience{1500};

// Pipes must not get the numbers of standard streams that the caller has closed.
void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) [[maybe_unused]]
      const int opened = ::open("/dev/null", O_RDWR);
}

// Those that a user or a system ends a program with; not those that the caller was told to ignore (nohup).
sigset_t signals_to_handle() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&set, signal);
  }
  return set;
}

// Passes signals to the supervisor until it ends; its exit code, or 128 + the signal that killed it.
int attend(pid_t supervisor, const sigset_t& signals) {
  for (;;) {
    const int signal = ::sigwaitinfo(&signals, nullptr);
    if (signal > 0 && signal != SIGCHLD) ::kill(supervisor, signal);
    int status = 0;
    if (::waitpid(supervisor, &status, WNOHANG) != supervisor) continue;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    sweep_descendants(sweep_patience);
    return 128 + WTERMSIG(status);
  }
}

int cannot(const LaunchSpec& spec, const char* what) {
  const int cause = errno;
  fmt::print(stderr, "{}: cannot {}: {}{}\n", spec.name, what, std::strerror(cause), limit_behind(cause));
  return 1;
}

}  // namespace

int launch(const LaunchSpec& spec) {
  open_standard_streams();
  std::fflush(nullptr);
  ::signal(SIGCHLD, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t signals = signals_to_handle();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return cannot(spec, "make a pipe");
  Descriptor lifeline(ends[0]), held(ends[1]);
  const pid_t supervisor = ::fork();
  if (supervisor < 0) return cannot(spec, "start a process");
  if (supervisor == 0) {
    ::setsid();
    held = Descriptor();
    ::_exit(supervise(spec, std::move(lifeline), signals, before));
  }
  const int code = attend(supervisor, signals);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

}  // namespace rondo::cli
