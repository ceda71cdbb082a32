#include "cli/processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>

#include "base/clock.hpp"

namespace rondo::cli {
namespace {

std::optional<Process> read_process(pid_t pid) {
  std::array<char, 512> text{};
  const Descriptor file(::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return std::nullopt;
  // "pid (name) state parent ..."; the name may hold anything, the last parenthesis ends it.
  const char* rest = std::strrchr(text.data(), ')');
  char state = 0;
  int parent = 0;
  if (!rest || std::sscanf(rest, ") %c %d", &state, &parent) != 2) return std::nullopt;
  return Process{pid, parent, state == 'Z' || state == 'X'};
}

std::vector<Process> all_processes() {
  std::vector<Process> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc"), ::closedir);
  while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr)
    if (const pid_t pid = std::atoi(entry->d_name); pid > 0)
      if (const auto process = read_process(pid)) processes.push_back(*process);
  return processes;
}

// Between fork and exec: only what is safe there. Never returns.
[[noreturn]] void become(char* const* command, char* const* environment, const sigset_t& mask, pid_t parent,
                         int output, int errors, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the line above
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  const bool ready =
      nothing >= 0 && ::dup2(nothing, 0) == 0 && ::dup2(output, 1) == 1 && ::dup2(errors, 2) == 2;
  if (ready) {
    if (nothing > 2) ::close(nothing);
    ::execvpe(command[0], command, environment);
  }
  const int error = ready ? errno : -errno;  // negative: it is not the program's fault
  [[maybe_unused]] const auto written = ::write(report, &error, sizeof(error));
  ::_exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (const auto& string : strings) list.push_back(const_cast<char*>(string.c_str()));
  list.push_back(nullptr);
  return list;
}

struct Pipe {
  Descriptor read, write;
};
std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

std::vector<Process> descendants() {
  const auto all = all_processes();
  std::vector<Process> found;
  std::set<pid_t> parents{::getpid()};
  // One generation per pass: pids wrap around, so a parent may have any number.
  for (bool grown = true; grown;) {
    grown = false;
    for (const Process& process : all)
      if (parents.contains(process.parent) && parents.insert(process.pid).second) {
        found.push_back(process);
        grown = true;
      }
  }
  return found;
}

bool sweep_descendants(std::chrono::milliseconds patience, const std::function<void(pid_t, int)>& reaped) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    // Also what looks dead: so does a process whose first thread has ended before the others.
    for (const Process& process : descendants()) ::kill(process.pid, SIGKILL);
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) reaped(pid, status);
    // As long as anything lives below, an ancestor of it is a child of this process.
    if (pid < 0 && errno == ECHILD) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::optional<Started> start(const Start& what) {
  auto output = make_pipe(), errors = make_pipe(), report = make_pipe();
  if (!output || !errors || !report) return std::nullopt;
  const auto command = pointers(what.command), environment = pointers(what.environment);
  const pid_t parent = ::getpid();
  Started started;
  started.pid = ::fork();
  if (started.pid < 0) return std::nullopt;
  if (started.pid == 0)
    become(command.data(), environment.data(), what.signal_mask, parent, output->write.get(),
           errors->write.get(), report->write.get());
  started.handle = Descriptor(int(::syscall(SYS_pidfd_open, started.pid, 0)));
  report->write = Descriptor();
  // exec closes the other end; a failed exec says why.
  if (::read(report->read.get(), &started.exec_error, sizeof(int)) != sizeof(int)) started.exec_error = 0;
  if (started.exec_error != 0) ::waitpid(started.pid, nullptr, 0);
  if (started.exec_error < 0) errno = -started.exec_error;
  if (started.exec_error < 0 || (started.exec_error == 0 && !started.handle)) return std::nullopt;
  for (const int fd : {output->read.get(), errors->read.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  started.output = std::move(output->read);
  started.errors = std::move(errors->read);
  return started;
}

}  // namespace rondo::cli
