#include "transport/shm/sealed.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

namespace rondo::shm {
namespace {

constexpr size_t page = 4096;
constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

}  // namespace

size_t whole_pages(size_t bytes) noexcept { return (bytes + page - 1) / page * page; }

std::optional<size_t> size_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return size_t(limit.rlim_cur);
}

// Beyond the limit of a file's size ftruncate raises SIGXFSZ, which ends most programs.
Descriptor make_memory(size_t bytes) noexcept {
  if (bytes > size_limit().value_or(bytes)) {
    errno = EFBIG;
    return Descriptor();
  }
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

bool same_memory(int one, int other) noexcept {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace rondo::shm
