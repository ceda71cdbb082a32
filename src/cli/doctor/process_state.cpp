#include "cli/doctor/process_state.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/descriptor.hpp"
#include "cli/doctor/files.hpp"

namespace rondo::cli::doctor {
namespace {

constexpr size_t longest_state = size_t(64) << 20;

Error refused(std::string text) { return {ErrorCode::refused, std::move(text)}; }

struct Process {
  pid_t pid;
  std::string folder, text;  // /proc/PID; "process PID (NAME)"
  explicit Process(pid_t number) : pid(number), folder("/proc/" + std::to_string(number)) {
    const std::string name = content(folder + "/comm");
    text = fmt::format("process {}{}", pid, name.empty() ? "" : " (" + name + ")");
  }
  // As the process itself sees it: the last of the numbers it has in the namespaces it is in.
  std::string own_number() const {
    const std::string numbers = field(content(folder + "/status"), "NSpid:").value_or(std::to_string(pid));
    return numbers.substr(numbers.find_last_of(" \t") + 1);  // npos + 1 is 0
  }
};

std::string namespace_of(const std::string& process, const char* kind) {
  std::error_code error;
  return std::filesystem::read_symlink(process + "/ns/" + kind, error).string();
}

Error nobody_listens(const Process& process) {
  const std::string theirs = namespace_of(process.folder, "net");
  if (!theirs.empty() && theirs != namespace_of("/proc/self", "net"))
    return refused(fmt::format("{} is in another network namespace: nsenter -t {} -n rondo doctor --pid {}",
                               process.text, process.pid, process.pid));
  return refused(
      fmt::format("{} does not answer as a Rondo process: it has no communicator now, or is in another "
                  "network namespace",
                  process.text));
}

Result<Descriptor> connect_to(const Process& process, TimePoint deadline) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error{ErrorCode::system, fmt::format("no socket: {}", std::strerror(errno))};
  const std::string name = "rondo-state-" + process.own_number();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  // EAGAIN: its queue is full.
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    if (errno == ECONNREFUSED) return nobody_listens(process);
    if (errno != EAGAIN && errno != EINTR)
      return refused(fmt::format("{} cannot be asked: {}", process.text, std::strerror(errno)));
    if (Clock::now() > deadline)
      return Error{ErrorCode::timeout, process.text + " is there, but too many others are asking it"};
    std::this_thread::sleep_for(milliseconds(10));
  }
  return socket;
}

// Any process can take a name; the kernel says who did. 0: a process that has no number here.
std::optional<Error> impostor(int socket, const Process& process) {
  ucred listener{};
  socklen_t size = sizeof listener;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0 || listener.pid == 0 ||
      listener.pid == process.pid)
    return std::nullopt;
  return refused(fmt::format("process {} answers in the name of {}", listener.pid, process.text));
}

Result<std::string> read_all(int socket, const Process& process, TimePoint deadline) {
  std::string text;
  char buffer[65536];
  for (;;) {
    pollfd ready{socket, POLLIN, 0};
    const int left = milliseconds_until(deadline);
    if (left == 0 || ::poll(&ready, 1, left) == 0)
      return Error{
          ErrorCode::timeout,
          fmt::format("{} listens, but has not answered in time ({} bytes came): it may be stopped, or "
                      "its service thread is busy",
                      process.text, text.size())};
    const ssize_t count = ::read(socket, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0 && errno != ECONNRESET)
      return refused(fmt::format("{}: {}", process.text, std::strerror(errno)));
    if (count < 0) return text;  // closed unread
    text.append(buffer, size_t(count));
    if (text.size() > longest_state)
      return Error{ErrorCode::mismatch, process.text + " sends without an end"};
  }
}

std::string owner_of(const Process& process) {
  struct stat status {};
  return ::stat(process.folder.c_str(), &status) == 0 ? std::to_string(status.st_uid) : "?";
}

}  // namespace

Result<std::string> process_state(pid_t pid, milliseconds patience) {
  const TimePoint deadline = deadline_after(patience);
  if (::kill(pid, 0) != 0 && errno == ESRCH)
    return Error{ErrorCode::invalid_argument, fmt::format("there is no process {}", pid)};
  const Process process(pid);
  const auto socket = connect_to(process, deadline);
  if (!socket) return socket.error();
  if (const auto error = impostor(socket->get(), process)) return *error;
  auto text = read_all(socket->get(), process, deadline);
  if (!text) return text;
  if (text->empty())
    return refused(fmt::format("{} refuses to answer user {}: it is of user {}", process.text, ::getuid(),
                               owner_of(process)));
  if (!nlohmann::json::accept(*text))
    return Error{ErrorCode::mismatch, process.text + " answers with what is not JSON"};
  return text;
}

}  // namespace rondo::cli::doctor
