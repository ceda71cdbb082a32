// Many vectors that travel as one: copied together before the operation and apart after it.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/call.hpp"
#include "rondo/call.hpp"
#include "rondo/result.hpp"

namespace rondo {

class Group {
 public:
  /// Copies all inputs together. Errors: invalid_argument for null or partly overlapping buffers, and for
  /// outputs that overlap each other; system when there is no memory.
  static Result<std::unique_ptr<Group>> pack(std::span<const Tensor> tensors, DataType type);
  /// Makes the whole the buffers of a call.
  void become(engine::Call& call) noexcept;
  /// To the outputs.
  void unpack() const noexcept;

 private:
  std::vector<Tensor> tensors_;
  size_t width_ = 0, count_ = 0;
  uint64_t vectors_ = 0, layout_ = 0;  // as in engine::Call
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace rondo
