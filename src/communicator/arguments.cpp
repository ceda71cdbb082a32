#include "communicator/arguments.hpp"

#include <fmt/format.h>

#include <cmath>

namespace rondo {
namespace {

using engine::Call;
using schedule::nobody;
using schedule::Operation;

Error invalid(const Call& call, const std::string& what) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", describe(call), what)};
}

Result<void> check_ranks(const Call& call, Rank rank, uint32_t world) {
  for (const Rank peer : {call.root, call.to == nobody ? 0 : call.to, call.from == nobody ? 0 : call.from})
    if (peer >= world) return invalid(call, fmt::format("there is no rank {} in a world of {}", peer, world));
  if (call.operation != Operation::send_recv) return {};
  // A send has no `from`, a recv no `to`, and neither has elements for it; but `nobody` may be a user's rank.
  const bool to_nobody = call.to == nobody && (call.from == nobody || call.parts->input[1] > 0);
  if (to_nobody || (call.from == nobody && call.parts->output[1] > 0))
    return invalid(call, fmt::format("there is no rank {} in a world of {}", nobody, world));
  if (call.to != rank && call.from != rank) return {};
  if (call.to != call.from)
    return invalid(call, "a rank exchanges data with itself only in a send_recv from itself to itself");
  if (call.parts->input == call.parts->output) return {};
  return invalid(call, "a rank that sends to itself must receive as much");
}

Result<void> check_reduction(const Call& call) {
  if (name_of(call.type) == "?" || name_of(call.reduction) == "?")
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: there is no such type or reduction (values {} and {})",
                             name_of(call.operation), int(call.type), int(call.reduction))};
  if (!schedule::reduces(call.operation)) return {};
  if (!is_defined(call.type, call.reduction))
    return invalid(call, fmt::format("there is no {} of {}", name_of(call.reduction), name_of(call.type)));
  if (!is_weighted(call.reduction)) return {};
  if (!std::isfinite(call.weight))
    return invalid(call, fmt::format("the weight is {}; it must be finite", call.weight));
  if (call.reduction == Reduction::weighted_avg && call.weight < 0)
    return invalid(call, fmt::format("the weight is {}; it must not be negative", call.weight));
  if (!is_float(call.type) && (std::trunc(call.weight) != call.weight || std::fabs(call.weight) > 0x1p53))
    return invalid(
        call, fmt::format("the weight of integers is {}; it must be a whole number up to 2^53 in magnitude",
                          call.weight));
  return {};
}

// Of an uneven operation: one count for each rank.
Result<void> check_parts(const Call& call, Rank rank, uint32_t world) {
  if (!call.parts || call.operation == Operation::send_recv) return {};
  const bool two_lists = call.operation == Operation::all_to_all;
  const std::pair<const char*, size_t> lists[]{
      {two_lists ? "send_counts" : "the counts", call.parts->input.size() - 1},
      {"recv_counts", call.parts->output.size() - 1}};
  for (const auto& [name, numbers] : lists)
    if (numbers != world)
      return invalid(call,
                     fmt::format("{} must hold {} numbers, one for each rank, not {}", name, world, numbers));
  const auto part = [rank](const std::vector<uint64_t>& first) { return first[rank + 1] - first[rank]; };
  if (two_lists && part(call.parts->input) != part(call.parts->output))
    return invalid(call, fmt::format("this rank sends itself {} elements, but is to receive {} of them",
                                     part(call.parts->input), part(call.parts->output)));
  return {};
}

// What this rank has of the whole vector, in elements: the two buffers begin at `first` of it.
struct Extents {
  Extent in, out;
};
Extents extents_of(const Call& call, Rank rank, uint32_t world) {
  const Extent whole{0, call.count};
  const auto& parts = call.parts;
  const Extent own = parts && parts->input.size() == world + 1
                         ? Extent{parts->input[rank], parts->input[rank + 1] - parts->input[rank]}
                         : shard(call.count, world, rank);
  const bool root = rank == call.root;
  switch (call.operation) {
    case Operation::all_reduce:
    case Operation::broadcast:
      return {whole, whole};
    case Operation::barrier:
      return {};
    case Operation::all_to_all:
    case Operation::send_recv:
      return parts ? Extents{{0, parts->input.back()}, {0, parts->output.back()}} : Extents{whole, whole};
    case Operation::reduce_scatter:
      return {whole, own};
    case Operation::all_gather:
      return {own, whole};
    case Operation::reduce:
      return {whole, root ? whole : Extent{}};
    case Operation::gather:
      return {own, root ? whole : Extent{}};
    case Operation::scatter:
      return {root ? whole : Extent{}, own};
  }
  return {};
}

bool has_in_place(Operation operation) {
  return operation != Operation::all_to_all && operation != Operation::send_recv;
}

}  // namespace

bool overlap(const Range& a, const Range& b) noexcept {
  return a.bytes > 0 && b.bytes > 0 && a.first < b.end() && b.first < a.end();
}

Result<void> check(const Call& call, Rank rank, uint32_t world) {
  if (call.operation == Operation::barrier) return {};
  if (auto valid = check_reduction(call); !valid) return valid;
  if (auto valid = check_ranks(call, rank, world); !valid) return valid;
  if (auto valid = check_parts(call, rank, world); !valid) return valid;
  const uint64_t width = size_of(call.type);
  const auto [in, out] = extents_of(call, rank, world);
  if (std::max({call.count, in.count, out.count}) > most_bytes / width)
    return invalid(call, "more bytes than an address space holds");
  if ((call.input == nullptr && in.count > 0) || (call.output == nullptr && out.count > 0))
    return invalid(call, "a buffer is null");
  const Range input(call.input, in.count * width), output(call.output, out.count * width);
  // In place, both buffers count from the same origin: the one that is a shard lies at its place in the
  // other.
  const bool in_place = input.first + out.first * width == output.first + in.first * width;
  if (overlap(input, output) && !(in_place && has_in_place(call.operation)))
    return invalid(call, has_in_place(call.operation)
                             ? "input and output overlap in part; they must be in place or disjoint"
                             : "input and output overlap; this operation is never in place");
  return {};
}

}  // namespace rondo
