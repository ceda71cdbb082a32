// rondo::Memory: buffers that the other ranks of the machine can map, so that data in them need not be copied
// on their way.
#pragma once
#include <cstddef>
#include <span>

#include "rondo/result.hpp"

namespace rondo {

/// Zeroed, page-aligned memory for any use. Any part of it, aligned or not, may be an operation's buffer, in
/// place or not, on any communicator made before or after it. Move-only; freed when destroyed, for which no
/// communicator need be idle: only operations on this very memory must have ended.
///
/// Where ranks share memory (Communicator::transport() is "shm"), they reduce and copy straight from it. Over
/// other transports it is memory like any other. Each Memory holds one file descriptor, and a communicator
/// lends at most 256 at a time; data in more are copied as from memory of any kind. So make few large ones.
///
/// It is shared with the children of a fork too, unlike memory of other kinds: what either writes, both see.
/// A child must not use Rondo in any case; let it leave this memory alone, or exec.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return bytes_; }  // in bytes
  /// As many whole elements as it has room for.
  template <class T>
  std::span<T> span() const noexcept {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

  /// Errors: system. Pages take memory when they are first touched. 0 bytes: empty, with null data.
  static Result<Memory> allocate(size_t bytes);

 private:
  Memory(std::byte* data, size_t bytes) noexcept : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// The same as Memory::allocate.
inline Result<Memory> allocate(size_t bytes) { return Memory::allocate(bytes); }

}  // namespace rondo
