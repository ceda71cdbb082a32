#include "command.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "base/random.hpp"

namespace rondo::test {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::string> names_in(const char* path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path), ::closedir);
  while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr)
    names.push_back(entry->d_name);
  return names;
}

// Other programs use these places too, and this project's tests, of which others may run at the same time: all their
// names begin with rondo-test-.
bool may_be_ours(const std::string& name) {
  return name.find("rondo") != name.npos && name.rfind("rondo-test-", 0) == name.npos;
}

bool is_zombie(pid_t pid) {
  std::string text;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), text);
  const size_t end = text.rfind(')');
  return end == text.npos || text.size() < end + 3 || text[end + 2] == 'Z' || text[end + 2] == 'X';
}

bool append(const Descriptor& from, std::string& to) {
  char buffer[65536];
  const ssize_t count = ::read(from.get(), buffer, sizeof(buffer));
  if (count > 0) to.append(buffer, size_t(count));
  return count > 0;
}

}  // namespace

Command::Command(const std::vector<std::string>& words, const std::vector<std::string>& environment)
    : mark_("RONDO_TEST_MARK=" + std::to_string(random_number())), started_(now()) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    for (const auto& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
    ::putenv(const_cast<char*>(mark_.c_str()));
    std::vector<char*> arguments;
    for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(126);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = Descriptor(out[0]);
  err_ = Descriptor(err[0]);
}

Command::~Command() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const pid_t left : alive()) ::kill(left, SIGKILL);
}

bool Command::read_some(int timeout_ms) {
  pollfd ready[2]{{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
  if (::poll(ready, 2, timeout_ms) <= 0) return false;
  if (ready[0].revents != 0 && !append(out_, ended_.out)) out_ = Descriptor();
  if (ready[1].revents != 0 && !append(err_, ended_.err)) err_ = Descriptor();
  return true;
}

bool Command::wait_for_output(const std::string& text, double limit_s) {
  const double deadline = now() + limit_s;
  while (ended_.out.find(text) == std::string::npos && ended_.err.find(text) == std::string::npos) {
    if (now() > deadline) return false;
    read_some(20);
  }
  return true;
}

bool Command::ended_within(double limit_s) {
  const double deadline = now() + limit_s;
  siginfo_t end{};
  while (::waitid(P_PID, id_t(pid_), &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == 0) {
    if (now() > deadline) return false;
    read_some(5);
  }
  return true;
}

void Command::close_output() { out_ = Descriptor(); }

// Its output may be held open by others for longer: what counts is its own end.
Ended Command::wait(double limit_s) {
  const double deadline = started_ + limit_s;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (now() > deadline && !ended_.too_late) {
      ended_.too_late = true;
      ::kill(-pid_, SIGKILL);
    }
    read_some(5);
  }
  pid_ = -1;
  ended_.seconds = now() - started_;
  while (read_some(0)) {
  }
  ended_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended_;
}

std::vector<pid_t> Command::alive() const {
  std::vector<pid_t> found;
  for (const auto& name : names_in("/proc")) {
    const pid_t pid = std::atoi(name.c_str());
    if (pid <= 0) continue;
    std::ifstream file("/proc/" + name + "/environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find(mark_) != std::string::npos && !is_zombie(pid)) found.push_back(pid);
  }
  return found;
}

double Command::seconds_until_gone(double limit_s) const {
  const double start = now();
  while (!alive().empty()) {
    if (now() - start > limit_s) return -1;
    ::usleep(5000);
  }
  return now() - start;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) list.push_back(line);
  return list;
}

std::string last_line(const std::string& text) {
  const auto all = lines(text);
  return all.empty() ? std::string() : all.back();
}

std::vector<std::string> shared_places() {
  auto names = names_in("/dev/shm"), more = names_in("/tmp");
  names.insert(names.end(), more.begin(), more.end());
  names.erase(std::remove_if(names.begin(), names.end(), [](const auto& name) { return !may_be_ours(name); }),
              names.end());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace rondo::test
