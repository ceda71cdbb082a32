// Numbers that ranks exchange: in memory that the others can read where it lies, when they are on this machine.
#pragma once
#include <cstddef>
#include <span>
#include <stdexcept>

#include "rondo/memory.hpp"

namespace trainer {

/// `count` zeros.
template <class T>
class Buffer {
 public:
  /// Throws runtime_error where there is no memory for it.
  explicit Buffer(size_t count) : memory_(allocated(count * sizeof(T))) {}
  std::span<T> span() { return memory_.span<T>(); }
  std::span<const T> span() const { return memory_.span<const T>(); }

 private:
  static rondo::Memory allocated(size_t bytes) {
    auto memory = rondo::allocate(bytes);
    if (!memory) throw std::runtime_error(memory.error().message);
    return std::move(*memory);
  }
  rondo::Memory memory_;
};

}  // namespace trainer
