#include "communicator/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "communicator/arguments.hpp"

namespace rondo {
namespace {

Error invalid(size_t index, const char* what) {
  return {ErrorCode::invalid_argument, fmt::format("all_reduce_group: tensor {}: {}", index, what)};
}

Result<void> check(std::span<const Tensor> tensors, size_t width) {
  std::vector<std::pair<Range, size_t>> outputs;
  uint64_t total = 0;
  for (size_t i = 0; i < tensors.size(); i++) {
    const Tensor& tensor = tensors[i];
    if (tensor.count == 0) continue;
    if (tensor.input == nullptr || tensor.output == nullptr) return invalid(i, "a buffer is null");
    if (tensor.count > most_bytes / width || (total += tensor.count) > most_bytes / width)
      return invalid(i, "more bytes than an address space holds");
    const Range input(tensor.input, tensor.count * width), output(tensor.output, tensor.count * width);
    if (input.first != output.first && overlap(input, output))
      return invalid(i, "input and output overlap in part; they must be equal or disjoint");
    outputs.push_back({output, i});
  }
  std::ranges::sort(outputs, {}, [](const auto& output) { return output.first.first; });
  for (size_t i = 1; i < outputs.size(); i++)
    if (overlap(outputs[i - 1].first, outputs[i].first))
      return invalid(outputs[i].second, "its output overlaps that of another");
  return {};
}

}  // namespace

Result<std::unique_ptr<Group>> Group::pack(std::span<const Tensor> tensors, DataType type) {
  auto group = std::make_unique<Group>();
  group->width_ = size_of(type);
  if (group->width_ == 0)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("all_reduce_group: there is no such type (value {})", int(type))};
  if (auto valid = check(tensors, group->width_); !valid) return valid.error();
  std::vector<uint64_t> counts;
  for (const Tensor& tensor : tensors) {
    counts.push_back(tensor.count);
    if (tensor.count > 0) group->tensors_.push_back(tensor);
  }
  group->vectors_ = counts.size();
  group->layout_ = engine::layout_of(counts);
  for (const Tensor& tensor : group->tensors_) group->count_ += tensor.count;
  group->memory_.reset(new (std::nothrow) std::byte[std::max<size_t>(1, group->count_ * group->width_)]);
  if (!group->memory_)
    return Error{ErrorCode::system, fmt::format("no memory for a group of {} elements", group->count_)};
  std::byte* at = group->memory_.get();
  for (const Tensor& tensor : group->tensors_) {
    std::memcpy(at, tensor.input, tensor.count * group->width_);
    at += tensor.count * group->width_;
  }
  return group;
}

void Group::become(engine::Call& call) noexcept {
  call.count = count_;
  call.input = call.output = memory_.get();
  call.vectors = vectors_;
  call.layout = layout_;
}

void Group::unpack() const noexcept {
  const std::byte* at = memory_.get();
  for (const Tensor& tensor : tensors_) {
    std::memcpy(tensor.output, at, tensor.count * width_);
    at += tensor.count * width_;
  }
}

}  // namespace rondo
