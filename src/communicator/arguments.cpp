#include "communicator/arguments.hpp"

#include <fmt/format.h>

namespace rondo {
namespace {

using schedule::Operation;

struct Memory {
  uintptr_t first;
  uint64_t bytes;
  uintptr_t end() const { return first + bytes; }
};

Memory memory(const std::byte* data, uint64_t bytes) { return {reinterpret_cast<uintptr_t>(data), bytes}; }

bool overlap(const Memory& a, const Memory& b) {
  return a.bytes > 0 && b.bytes > 0 && a.first < b.end() && b.first < a.end();
}

Error invalid(const engine::Call& call, const std::string& what) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", describe(call), what)};
}

}  // namespace

Result<void> check(const engine::Call& call, Rank rank, uint32_t world) {
  if (call.operation == Operation::barrier) return {};
  if (name_of(call.type) == "?" || name_of(call.reduction) == "?")
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: there is no such type or reduction (values {} and {})",
                             name_of(call.operation), int(call.type), int(call.reduction))};
  if (call.root >= world)
    return invalid(call, fmt::format("there is no rank {} in a world of {}", call.root, world));
  const uint64_t width = size_of(call.type);
  if (call.count > (uint64_t(1) << 48) / width)
    return invalid(call, "more bytes than an address space holds");
  const Extent own = shard(call.count, world, rank);
  const Extent in = call.operation == Operation::all_gather ? own : Extent{0, call.count};
  const Extent out = call.operation == Operation::reduce_scatter ? own : Extent{0, call.count};
  if ((call.input == nullptr && in.count > 0) || (call.output == nullptr && out.count > 0))
    return invalid(call, "a buffer is null");
  const Memory input = memory(call.input, in.count * width), output = memory(call.output, out.count * width);
  // In place, both buffers count from the same origin: the one that is a shard lies at its place in the
  // other.
  const bool in_place = input.first + out.first * width == output.first + in.first * width;
  if (!in_place && overlap(input, output))
    return invalid(call, "input and output overlap in part; they must be in place or disjoint");
  return {};
}

}  // namespace rondo
