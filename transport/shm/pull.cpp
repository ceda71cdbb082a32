#include "transport/shm/pull.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "base/random.hpp"

namespace rondo::shm {
namespace {

iovec remote(uint64_t address, size_t bytes) { return {reinterpret_cast<void*>(address), bytes}; }

}  // namespace

Witness::Witness() noexcept {
  for (auto& half : number_) half = random_number();
}

Testimony Witness::testimony() const noexcept {
  return {{number_[0], number_[1]}, reinterpret_cast<uintptr_t>(&number_), int32_t(::getpid())};
}

void Witness::withdraw() noexcept {
  for (auto& half : number_) half = 0;
}

// The first and the last byte, for memory of one kind is seldom put together from several.
bool can_be_pulled(const Testimony& own, const View& piece) noexcept {
  if (piece.bytes == 0 || ::getpid() != own.process) return false;
  std::byte ends[2];
  const auto first = reinterpret_cast<uintptr_t>(piece.data);
  const iovec into{ends, sizeof ends}, from[]{remote(first, 1), remote(first + piece.bytes - 1, 1)};
  return ::process_vm_readv(own.process, &into, 1, from, 2, 0) == sizeof ends;
}

// The kernel holds on to one address space during a call, and reads the pieces in their order.
bool Puller::pull(std::span<std::byte> into, uint64_t address) const noexcept {
  std::array<uint64_t, 2> number{};
  const iovec to[]{{into.data(), into.size()}, {number.data(), sizeof number}};
  const iovec from[]{remote(address, into.size()), remote(of_.address, sizeof number)};
  const ssize_t wanted = ssize_t(into.size() + sizeof number);
  const ssize_t got = ::process_vm_readv(of_.process, to, 2, from, 2, 0);
  if (got == wanted && number == of_.number && number != decltype(number){}) return true;
  if (got >= 0) errno = got == wanted ? ESTALE : EFAULT;
  return false;
}

}  // namespace rondo::shm
