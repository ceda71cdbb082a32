// Numbers that ranks exchange.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace trainer {

/// `count` zeros.
template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count) : values_(count) {}
  std::span<T> span() { return values_; }
  std::span<const T> span() const { return values_; }

 private:
  std::vector<T> values_;
};

}  // namespace trainer
