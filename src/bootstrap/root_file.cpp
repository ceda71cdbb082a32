#include "bootstrap/root_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>

#include "bootstrap/process.hpp"

namespace rondo::bootstrap {
namespace {

constexpr std::string_view heading = "rondo-root 1";

// At most 4 KiB, and without waiting: the user's path may lead anywhere.
std::optional<std::string> content_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return std::nullopt;
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
  if (size < 0) return std::nullopt;
  return std::string(buffer.data(), size_t(size));
}

std::string this_boot() {
  std::string boot;
  std::istringstream(content_of("/proc/sys/kernel/random/boot_id").value_or("?")) >> boot;
  return boot;
}

bool is_here(const RootOwner& owner) { return owner.boot == this_boot() && lives(owner.process); }

Error failed(const char* action, const std::string& path) {
  return {ErrorCode::system, fmt::format("cannot {} {}: {}", action, path, std::strerror(errno))};
}

}  // namespace

std::string to_text(const RootFile& content) {
  return fmt::format("{}\n{} {}\n{}\n{} {} {} {}\n", heading, ip_of(content.record.address).to_string(),
                     port_of(content.record.address), content.record.nonce, content.owner.boot,
                     content.owner.process.pid_namespace, content.owner.process.pid,
                     content.owner.process.start);
}

std::optional<RootFile> parse_root_file(const std::string& text) {
  std::istringstream in(text);
  std::string first, ip;
  uint16_t port = 0;
  RootFile content;
  std::getline(in, first);
  in >> ip >> port >> content.record.nonce;
  Process& process = content.owner.process;
  in >> content.owner.boot >> process.pid_namespace >> process.pid >> process.start;
  asio::error_code error;
  const auto address = asio::ip::make_address(ip, error);
  if (first != heading || !in || error) return std::nullopt;
  content.record.address = tcp_address(address, port);
  return content;
}

Result<void> publish(const std::string& path, const RootRecord& record) {
  if (const auto old = content_of(path); old && !old->empty()) {
    const auto parsed = parse_root_file(*old);
    if (!parsed) return Error{ErrorCode::invalid_argument, path + " exists and is not a root file of Rondo"};
    if (is_here(parsed->owner))
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} is in use by process {}, which is starting a job of its own: "
                               "give each job its own file",
                               path, parsed->owner.process.pid)};
  }
  const std::string draft = path + ".new", text = to_text(RootFile{record, {this_boot(), this_one()}});
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
  const auto content = text ? parse_root_file(*text) : std::nullopt;
  if (content && content->record.nonce == nonce) ::unlink(path.c_str());
}

Result<RootRecord> look_at(const std::string& path) {
  const auto text = content_of(path);
  if (!text) return failed("read", path);
  const auto content = parse_root_file(*text);
  if (!content) return Error{ErrorCode::peer_lost, path + " is not a root file of Rondo"};
  if (!is_here(content->owner))
    return Error{ErrorCode::peer_lost,
                 path + " was left behind by a process that is gone, or written on another machine"};
  return content->record;
}

}  // namespace rondo::bootstrap
