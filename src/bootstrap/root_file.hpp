// A root of the form file:/path: rank 0 listens at a loopback port of the kernel's choice and writes it
// there. For the processes of one machine.
//
// The file is replaced in one step, so no reader sees half of it. It names the process that wrote it by pid
// and start time, so what a crashed run left behind is told from a live one; its nonce must be repeated in
// the handshake, so that a port which has found another owner meanwhile is noticed too.
#pragma once
#include <optional>
#include <string>

#include "bootstrap/socket.hpp"

namespace rondo::bootstrap {

struct RootRecord {
  Address address;
  uint64_t nonce = 0;
};
/// Who wrote it.
struct RootOwner {
  std::string boot;
  Process process;
};
struct RootFile {
  RootRecord record;
  RootOwner owner;
};
std::string to_text(const RootFile& file);
/// Nothing: it is something else.
std::optional<RootFile> parse_root_file(const std::string& text);

/// Errors: invalid_argument when another live process is using the file or it is something else, system.
Result<void> publish(const std::string& path, const RootRecord& record);
/// Removes the file if it is still the one with this nonce.
void withdraw(const std::string& path, uint64_t nonce) noexcept;
/// The error says why there is no usable record yet.
Result<RootRecord> look_at(const std::string& path);

}  // namespace rondo::bootstrap
