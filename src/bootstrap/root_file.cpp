#include "bootstrap/root_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>

namespace rondo::bootstrap {
namespace {

constexpr std::string_view heading = "rondo-root 1";

// Which process, for sure: a pid alone is used again.
struct Process {
  std::string boot;
  uint64_t pid_namespace = 0, pid = 0, start = 0;
};
struct Content {
  RootRecord record;
  Process owner;
};

std::optional<std::string> content_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return std::nullopt;
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
  if (size < 0) return std::nullopt;
  return std::string(buffer.data(), size_t(size));
}

// Fields 3 (state) and 22 (start time) of proc_pid_stat(5); the name before them may hold anything. 0: it is
// gone.
uint64_t start_time(uint64_t pid) {
  const auto stat = content_of(fmt::format("/proc/{}/stat", pid));
  if (!stat) return 0;
  std::istringstream fields(stat->substr(std::min(stat->rfind(')'), stat->size() - 1) + 1));
  std::string state, skipped;
  fields >> state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  uint64_t start = 0;
  fields >> start;
  return state == "Z" || state == "X" ? 0 : start;
}

Process this_one() {
  Process process;
  std::istringstream(content_of("/proc/sys/kernel/random/boot_id").value_or("?")) >> process.boot;
  struct stat status {};
  if (::stat("/proc/self/ns/pid", &status) == 0) process.pid_namespace = status.st_ino;
  process.pid = uint64_t(::getpid());
  process.start = start_time(process.pid);
  return process;
}

// In another pid namespace nothing can be said: assume that it lives.
bool lives(const Process& other) {
  const Process here = this_one();
  if (other.boot != here.boot) return false;
  return other.pid_namespace != here.pid_namespace || start_time(other.pid) == other.start;
}

std::string format(const Content& content) {
  return fmt::format("{}\n{} {}\n{}\n{} {} {} {}\n", heading, ip_of(content.record.address).to_string(),
                     port_of(content.record.address), content.record.nonce, content.owner.boot,
                     content.owner.pid_namespace, content.owner.pid, content.owner.start);
}

std::optional<Content> parse(const std::string& text) {
  std::istringstream in(text);
  std::string first, ip;
  uint16_t port = 0;
  Content content;
  std::getline(in, first);
  in >> ip >> port >> content.record.nonce;
  in >> content.owner.boot >> content.owner.pid_namespace >> content.owner.pid >> content.owner.start;
  asio::error_code error;
  const auto address = asio::ip::make_address(ip, error);
  if (first != heading || !in || error) return std::nullopt;
  content.record.address = tcp_address(address, port);
  return content;
}

Error failed(const char* action, const std::string& path) {
  return {ErrorCode::system, fmt::format("cannot {} {}: {}", action, path, std::strerror(errno))};
}

}  // namespace

Result<void> publish(const std::string& path, const RootRecord& record) {
  if (const auto old = content_of(path); old && !old->empty()) {
    const auto parsed = parse(*old);
    if (!parsed) return Error{ErrorCode::invalid_argument, path + " exists and is not a root file of Rondo"};
    if (lives(parsed->owner))
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} is in use by process {}, which is starting a job of its own: "
                               "give each job its own file",
                               path, parsed->owner.pid)};
  }
  const std::string draft = path + ".new", text = format({record, this_one()});
  const Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return failed("write", draft);
  if (::write(file.get(), text.data(), text.size()) != ssize_t(text.size()) ||
      ::rename(draft.c_str(), path.c_str()) != 0) {
    const Error error = failed("write", path);
    ::unlink(draft.c_str());
    return error;
  }
  return {};
}

void withdraw(const std::string& path, uint64_t nonce) noexcept {
  const auto text = content_of(path);
  const auto content = text ? parse(*text) : std::nullopt;
  if (content && content->record.nonce == nonce) ::unlink(path.c_str());
}

Result<RootRecord> look_at(const std::string& path) {
  const auto text = content_of(path);
  if (!text) return failed("read", path);
  const auto content = parse(*text);
  if (!content) return Error{ErrorCode::peer_lost, path + " is not a root file of Rondo"};
  if (!lives(content->owner))
    return Error{ErrorCode::peer_lost,
                 path + " was left behind by a process that is gone, or written on another machine"};
  return content->record;
}

}  // namespace rondo::bootstrap
