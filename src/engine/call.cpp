#include "engine/call.hpp"

#include <fmt/format.h>

#include <array>

namespace rondo::engine {
namespace {

constexpr unsigned field_bits = 5, fields = 4, hash_bits = 64 - field_bits * fields;

// splitmix64's finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
uint64_t mix(uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Beyond the operations: those with parts of different sizes, and the parts of what has no operation of its own.
constexpr unsigned first_uneven_code = 16, first_part_code = 28;

unsigned operation_code(const Call& call) {
  if (call.part_of != PartOf::nothing) return first_part_code + unsigned(call.part_of);
  const bool uneven = call.parts && call.operation != schedule::Operation::send_recv;
  return (uneven ? first_uneven_code : 0) + unsigned(call.operation);
}

std::string name_of_code(unsigned code) {
  switch (PartOf(code < first_part_code ? 0 : code - first_part_code)) {
    case PartOf::nothing:
      break;
    case PartOf::split:
      return "split";
    case PartOf::duplicate:
      return "duplicate";
    case PartOf::grow:
      return "grow";
  }
  if (code < first_uneven_code) return std::string(name_of(schedule::Operation(code)));
  return fmt::format("{}_v", name_of(schedule::Operation(code - first_uneven_code)));
}

unsigned field(uint64_t digest, unsigned index) {
  return unsigned(digest >> (hash_bits + field_bits * index)) & 31;
}

std::string name_of_field(unsigned index, unsigned value) {
  switch (index) {
    case 0:
      return name_of_code(value);
    case 1:
      return std::string(name_of(schedule::Algorithm(value)));
    case 2:
      return std::string(name_of(DataType(value)));
    default:
      return std::string(name_of(Reduction(value)));
  }
}

}  // namespace

bool alike(const Call& a, const Call& b) noexcept {
  const bool same_parts = a.parts == b.parts || (a.parts && b.parts && *a.parts == *b.parts);
  return a.operation == b.operation && a.part_of == b.part_of && a.algorithm == b.algorithm &&
         a.type == b.type && a.reduction == b.reduction && a.count == b.count && a.root == b.root &&
         a.to == b.to && a.from == b.from && a.reproducible == b.reproducible && a.tag == b.tag &&
         a.vectors == b.vectors && a.layout == b.layout && same_parts;
}

std::string name_of_operation(const Call& call) { return name_of_code(operation_code(call)); }

std::string describe(const Call& call) {
  if (call.operation == schedule::Operation::barrier || call.part_of != PartOf::nothing)
    return name_of_operation(call) + (call.tag == 0 ? "" : fmt::format(", tag {}", call.tag));
  const auto type = name_of(call.type);
  if (call.operation == schedule::Operation::send_recv) {
    std::string text;
    if (call.to != schedule::nobody)
      text = fmt::format("send of {} {} to rank {}", call.parts->input[1], type, call.to);
    if (call.from != schedule::nobody)
      text += fmt::format("{}receive of {} {} from rank {}", text.empty() ? "" : ", ", call.parts->output[1],
                          type, call.from);
    if (text.empty()) text = "send or receive";
    if (call.tag != 0) text += fmt::format(", tag {}", call.tag);
    return text;
  }
  std::string text = fmt::format("{} of {} {}", name_of_operation(call), call.count, type);
  if (schedule::reduces(call.operation)) text += fmt::format(", {}", name_of(call.reduction));
  if (schedule::is_rooted(call.operation)) text += fmt::format(", root {}", call.root);
  if (call.vectors > 0) text += fmt::format(", in {} vectors", call.vectors);
  if (call.tag != 0) text += fmt::format(", tag {}", call.tag);
  return text;
}

uint64_t layout_of(std::span<const uint64_t> counts) noexcept {
  uint64_t hash = mix(counts.size());
  for (const uint64_t count : counts) hash = mix(hash ^ count);
  return hash;
}

namespace {

uint64_t digest_of(const Call& call, uint64_t hash) {
  const std::array<unsigned, fields> plain{operation_code(call), unsigned(*call.algorithm),
                                           unsigned(call.type), unsigned(call.reduction)};
  uint64_t digest = hash >> (64 - hash_bits);
  for (unsigned i = 0; i < fields; i++) digest |= uint64_t(plain[i] & 31) << (hash_bits + field_bits * i);
  return digest;
}

}  // namespace

size_t header_bytes_of(const Call& call) noexcept {
  const bool weighted = is_weighted(call.reduction) && schedule::reduces(call.operation);
  return weighted ? weighted_header_bytes : header_bytes;
}

Header header_of(const Call& call, uint64_t epoch, uint64_t sequence, uint64_t window) {
  uint64_t hash = mix(epoch ^ mix(call.count ^ mix(call.root ^ mix(window))));
  const bool ordered = call.reproducible && schedule::reduces(call.operation);
  hash = mix(hash ^ mix(call.tag ^ mix(call.vectors ^ mix(call.layout ^ (ordered ? 1 : 0)))));
  for (size_t i = 1; call.parts && i < call.parts->input.size(); i++) hash = mix(hash ^ call.parts->input[i]);
  return {sequence, digest_of(call, hash), call.weight};
}

bool is_pairwise(const Call& call) noexcept {
  return call.operation == schedule::Operation::send_recv ||
         (call.operation == schedule::Operation::all_to_all && call.parts != nullptr);
}

Header pair_header_of(const Call& call, uint64_t epoch, uint64_t sequence, uint64_t count) {
  return {sequence, digest_of(call, mix(epoch ^ mix(count ^ mix(call.tag)))), call.weight};
}

bool is_of_all(const Header& header) noexcept {
  return field(header.digest, 0) != unsigned(schedule::Operation::send_recv);
}

std::optional<std::string> difference(const Header& ours, const Header& theirs) {
  if (ours.sequence == theirs.sequence && ours.digest == theirs.digest) return std::nullopt;
  constexpr std::array names{"operation", "algorithm", "type", "reduction"};
  for (unsigned i = 0; i < fields; i++) {
    // The same operation at another place in the order is told by its number.
    if (i == 1 && ours.sequence != theirs.sequence)
      return fmt::format("sequence number: {} here, {} there", ours.sequence, theirs.sequence);
    const unsigned here = field(ours.digest, i), there = field(theirs.digest, i);
    if (here != there)
      return fmt::format("{}: {} here, {} there", names[i], name_of_field(i, here), name_of_field(i, there));
  }
  return "count, root, order or tag";
}

}  // namespace rondo::engine
