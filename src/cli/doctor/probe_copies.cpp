// Copies between two processes, tried: what a peer would do, a child does.
//
//   this process                                   the child
//   makes memory, writes a pattern, seals it
//   sends the descriptor to a mailbox -----------> maps it, compares
//   has a number in its private memory ----------> reads it from its parent (process_vm_readv), compares
//   reads the verdict from a pipe <--------------- writes it, ends
//
// A child reads its parent, since ranks are not each other's parents: a kernel that lets only parents read
// (ptrace_scope 1) must not pass.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/passing.hpp"
#include "base/random.hpp"
#include "cli/doctor/probe.hpp"
#include "transport/shm/sealed.hpp"
#include "transport/shm/socket_name.hpp"

namespace rondo::cli::doctor {
namespace {

using Pattern = std::array<uint64_t, 64>;
constexpr size_t memory_bytes = copies_bytes;
constexpr milliseconds patience{2000};
constexpr const char* prefix = "rondo-doctor-";

// The step that failed, and why; name null: none.
struct Step {
  const char* name = nullptr;
  int error = 0;
  std::string text() const {
    return name ? fmt::format("{}: {}", name, std::strerror(error)) : std::string();
  }
};
// The child's; its pointers are to literals, which lie at the same addresses in its parent.
struct Verdict {
  Step shared, reading;
};

class Mapping {
 public:
  Mapping(int memory, int protection)
      : base_(::mmap(nullptr, memory_bytes, protection, MAP_SHARED, memory, 0)) {}
  /// Private memory.
  Mapping()
      : base_(::mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() {
    if (*this) ::munmap(base_, memory_bytes);
  }
  Mapping(const Mapping&) = delete;
  explicit operator bool() const { return base_ != MAP_FAILED; }
  void* get() const { return base_; }

 private:
  void* const base_;
};

struct Pipe {
  Descriptor out, in;  // what is written into `in` is read from `out`
  bool make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    out = Descriptor(ends[0]);
    in = Descriptor(ends[1]);
    return true;
  }
};

Step send_memory(int mailbox, const shm::RandomName& name, const Pattern& pattern) {
  const Descriptor memory = shm::make_memory(memory_bytes);
  if (!memory) return {"memfd_create", errno};
  const Mapping mapping(memory.get(), PROT_READ | PROT_WRITE);
  if (!mapping) return {"mmap", errno};
  std::memcpy(mapping.get(), pattern.data(), sizeof pattern);
  if (!shm::seal_size(memory.get())) return {"sealing", errno};
  if (mailbox < 0) return {"a Unix socket", EACCES};
  sockaddr_un address;
  const socklen_t size = shm::socket_address(prefix, name, address);
  const Descriptor socket = shm::datagram_socket();
  const std::byte letter[1] = {};
  if (!send_message(socket.get(), letter, memory.get(), {reinterpret_cast<const sockaddr*>(&address), size}))
    return {"passing a descriptor", errno};
  return {};
}

Step receive_memory(int mailbox, const Pattern& pattern) {
  pollfd ready{mailbox, POLLIN, 0};
  if (::poll(&ready, 1, int(patience.count())) != 1) return {"waiting for a descriptor", ETIMEDOUT};
  std::byte letter[1];
  const Received received = receive_message(mailbox, letter);
  if (!received.descriptor) return {"receiving a descriptor", received.bytes < 0 ? errno : EBADF};
  if (!shm::look_at(received.descriptor.get()).sealed) return {"looking at the seals", EPERM};
  const Mapping mapping(received.descriptor.get(), PROT_READ);
  if (!mapping) return {"mmap of a peer's memory", errno};
  if (std::memcmp(mapping.get(), pattern.data(), sizeof pattern) != 0) return {"comparing the memory", EIO};
  return {};
}

// `theirs` is an address in the parent, whose memory has changed since the fork.
Step read_parent(pid_t parent, void* theirs, const Pattern& expected) {
  Pattern read{};
  const iovec into{read.data(), sizeof read}, from{theirs, sizeof read};
  if (::process_vm_readv(parent, &into, 1, &from, 1, 0) != ssize_t(sizeof read))
    return {"process_vm_readv", errno};
  if (read != expected) return {"process_vm_readv of another process", EIO};
  return {};
}

Verdict judge_child(pid_t child, int verdicts) {
  Verdict verdict{{"the child's answer", ETIMEDOUT}, {"the child's answer", ETIMEDOUT}};
  pollfd ready{verdicts, POLLIN, 0};
  Verdict told;
  if (::poll(&ready, 1, int(2 * patience.count())) == 1 &&
      ::read(verdicts, &told, sizeof told) == ssize_t(sizeof told))
    verdict = told;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return verdict;
}

}  // namespace

Copies probe_copies() {
  const auto failed = [] { return Copies{std::strerror(errno), std::strerror(errno)}; };
  Pattern pattern;
  fill_random(std::as_writable_bytes(std::span(pattern)));
  const Mapping own;  // gets the pattern after the fork: the child's copy does not
  shm::RandomName name;
  const Descriptor mailbox = shm::listen_at_random(prefix, name);
  Pipe start, verdicts;
  if (!own || !start.make() || !verdicts.make()) return failed();
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return failed();
  if (child == 0) {
    start.in = Descriptor();
    char go;
    if (::read(start.out.get(), &go, 1) != 1) ::_exit(1);  // its parent has gone
    const Verdict verdict{receive_memory(mailbox.get(), pattern), read_parent(parent, own.get(), pattern)};
    ::_exit(::write(verdicts.in.get(), &verdict, sizeof verdict) == ssize_t(sizeof verdict) ? 0 : 1);
  }
  verdicts.in = Descriptor();
  std::memcpy(own.get(), pattern.data(), sizeof pattern);
  const Step sent = send_memory(mailbox.get(), name, pattern);
  const bool started = ::write(start.in.get(), "", 1) == 1;
  const Verdict verdict = judge_child(child, started ? verdicts.out.get() : -1);
  return {sent.name ? sent.text() : verdict.shared.text(), verdict.reading.text()};
}

}  // namespace rondo::cli::doctor
