#include "bootstrap/process.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <sstream>

#include "base/text_file.hpp"

namespace rondo::bootstrap {
namespace {

constexpr size_t longest_stat = 4096;

struct Seen {
  uint64_t start = 0;  // 0: there is no such process
  bool ended = true;   // its parent has not noticed yet, or its first thread has left the others alone
};

// Fields 3 (state) and 22 (start time) of proc_pid_stat(5); the name before them may hold anything.
Seen look_at_process(uint64_t pid) {
  const auto stat = read_text(fmt::format("/proc/{}/stat", pid), longest_stat);
  if (!stat || stat->empty()) return {};
  std::istringstream fields(stat->substr(std::min(stat->rfind(')'), stat->size() - 1) + 1));
  std::string state, skipped;
  fields >> state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  Seen seen;
  fields >> seen.start;
  seen.ended = state == "Z" || state == "X";
  return seen;
}

uint64_t own_pid_namespace() noexcept {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

Process this_one() {
  const auto pid = uint64_t(::getpid());
  return {own_pid_namespace(), pid, look_at_process(pid).start};
}

bool lives(const Process& other) {
  if (other.pid_namespace != own_pid_namespace()) return true;
  const Seen seen = look_at_process(other.pid);
  return !seen.ended && seen.start == other.start;
}

// Opened first, looked at then: a pid that is used again meanwhile has another start.
Descriptor open_process(const Process& other) noexcept {
  if (other.start == 0 || other.pid_namespace == 0 || other.pid_namespace != own_pid_namespace()) return {};
  Descriptor process(int(::syscall(SYS_pidfd_open, pid_t(other.pid), 0)));  // close-on-exec by itself
  try {
    if (process && look_at_process(other.pid).start == other.start) return process;
  } catch (const std::bad_alloc&) {
  }
  return {};
}

}  // namespace rondo::bootstrap
