// One collective call as the engine sees it, and how it is told apart from every other call.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "rondo/types.hpp"
#include "schedule/step.hpp"

namespace rondo::engine {

struct Call {
  schedule::Operation operation;
  std::optional<schedule::Algorithm> algorithm = {};  // nothing: what the engine selects
  DataType type = DataType::f32;
  Reduction reduction = Reduction::sum;
  uint64_t count = 0;  // of the whole vector
  Rank root = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

/// "all_reduce of 1024 f32, sum"
std::string describe(const Call& call);

/// The first bytes of an operation on every link: proof that both ends run the same call. `digest` shows
/// operation, algorithm, type and reduction in plain bits, so that an error can name the field, and a 44-bit
/// hash of the rest.
struct Header {
  uint64_t sequence, digest;
};
static_assert(sizeof(Header) == 16);

Header header_of(const Call& call, uint64_t epoch, uint64_t sequence, uint64_t window);
/// What differs, as "type: f32 here, f64 there"; nothing when the headers are equal.
std::optional<std::string> difference(const Header& ours, const Header& theirs);

}  // namespace rondo::engine
