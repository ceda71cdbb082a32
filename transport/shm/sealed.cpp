#include "transport/shm/sealed.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace rondo::shm {
namespace {

constexpr size_t page = 4096;
constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

}  // namespace

size_t whole_pages(size_t bytes) noexcept { return (bytes + page - 1) / page * page; }

Descriptor make_memory(size_t bytes) noexcept {
  Descriptor memory(::memfd_create("rondo", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory && ::ftruncate(memory.get(), off_t(bytes)) != 0) return Descriptor();
  return memory;
}

// F_SEAL_FUTURE_WRITE came with Linux 5.1.
bool seal_size(int memory) noexcept {
  if (::fcntl(memory, F_ADD_SEALS, size_seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) return true;
  return ::fcntl(memory, F_ADD_SEALS, size_seals | F_SEAL_SEAL) == 0;
}

Sealed look_at(int memory) noexcept {
  struct stat status {};
  if (::fstat(memory, &status) != 0) return {false, -1};
  const int seals = ::fcntl(memory, F_GET_SEALS);
  return {seals >= 0 && (seals & size_seals) == size_seals, long(status.st_size)};
}

}  // namespace rondo::shm
