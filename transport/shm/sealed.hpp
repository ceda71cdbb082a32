// Anonymous memory that processes give each other: a memfd that can neither shrink, or a peer could make a
// reader's next access a SIGBUS, nor grow.
#pragma once
#include <cstddef>
#include <optional>

#include "base/descriptor.hpp"

namespace rondo::shm {

size_t whole_pages(size_t bytes) noexcept;
/// The most that the process may give one file, and so one memory (ulimit -f), where there is a limit.
std::optional<size_t> size_limit() noexcept;
/// Not sealed yet; none: errno says why, EFBIG that it is above the limit.
Descriptor make_memory(size_t bytes) noexcept;
/// After its owner has mapped it. Peers map it read-only; where the kernel can, it makes sure. False: errno
/// says why.
bool seal_size(int memory) noexcept;
/// Whether it is sealed and has this size. -1: it cannot be told.
struct Sealed {
  bool sealed;
  long bytes;
};
Sealed look_at(int memory) noexcept;
bool same_memory(int one, int other) noexcept;

}  // namespace rondo::shm
