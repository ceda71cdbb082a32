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

unsigned field(uint64_t digest, unsigned index) {
  return unsigned(digest >> (hash_bits + field_bits * index)) & 31;
}

bool reduces(schedule::Operation operation) {
  return operation == schedule::Operation::all_reduce || operation == schedule::Operation::reduce_scatter;
}

std::string name_of_field(unsigned index, unsigned value) {
  switch (index) {
    case 0:
      return std::string(name_of(schedule::Operation(value)));
    case 1:
      return std::string(name_of(schedule::Algorithm(value)));
    case 2:
      return std::string(name_of(DataType(value)));
    default:
      return std::string(name_of(Reduction(value)));
  }
}

}  // namespace

std::string describe(const Call& call) {
  if (call.operation == schedule::Operation::barrier) return "barrier";
  std::string text = fmt::format("{} of {} {}", name_of(call.operation), call.count, name_of(call.type));
  if (reduces(call.operation)) text += fmt::format(", {}", name_of(call.reduction));
  if (call.operation == schedule::Operation::broadcast) text += fmt::format(", root {}", call.root);
  return text;
}

Header header_of(const Call& call, uint64_t epoch, uint64_t sequence, uint64_t window) {
  const std::array<unsigned, fields> plain{unsigned(call.operation), unsigned(*call.algorithm),
                                           unsigned(call.type), unsigned(call.reduction)};
  uint64_t digest = mix(epoch ^ mix(call.count ^ mix(call.root ^ mix(window)))) >> (64 - hash_bits);
  for (unsigned i = 0; i < fields; i++) digest |= uint64_t(plain[i] & 31) << (hash_bits + field_bits * i);
  return {sequence, digest};
}

std::optional<std::string> difference(const Header& ours, const Header& theirs) {
  if (ours.sequence != theirs.sequence)
    return fmt::format("sequence number: {} here, {} there", ours.sequence, theirs.sequence);
  if (ours.digest == theirs.digest) return std::nullopt;
  constexpr std::array names{"operation", "algorithm", "type", "reduction"};
  for (unsigned i = 0; i < fields; i++) {
    const unsigned here = field(ours.digest, i), there = field(theirs.digest, i);
    if (here != there)
      return fmt::format("{}: {} here, {} there", names[i], name_of_field(i, here), name_of_field(i, there));
  }
  return "count or root";
}

}  // namespace rondo::engine
