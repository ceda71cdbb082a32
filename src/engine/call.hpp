// One collective call as the engine sees it, and how it is told apart from every other call.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rondo/types.hpp"
#include "schedule/layout.hpp"

namespace rondo::engine {

/// Whose part a call is: that of a call of the user's which needs more than one operation, or nobody's.
enum class PartOf : uint8_t { nothing, split, duplicate, grow };

struct Call {
  schedule::Operation operation;
  PartOf part_of = PartOf::nothing;
  std::optional<schedule::Algorithm> algorithm = {};  // nothing: what the engine selects
  DataType type = DataType::f32;
  Reduction reduction = Reduction::sum;
  uint64_t count = 0;  // of the whole vector; of a send_recv unused
  Rank root = 0;
  Rank to = schedule::nobody, from = schedule::nobody;     // of a send_recv
  std::shared_ptr<const schedule::Parts> parts = nullptr;  // of an uneven operation and a send_recv
  double weight = 1;  // of this rank, in a weighted reduction; may differ between ranks
  bool reproducible = false;
  uint64_t tag = 0;                  // CallOptions::tag
  uint64_t vectors = 0, layout = 0;  // of a group: how many, and a hash of their counts
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

/// Whether they are the same but for their buffers and weights.
bool alike(const Call& a, const Call& b) noexcept;
/// Makes `call` the same as `next`, which is alike.
inline void renew(Call& call, const Call& next) noexcept {
  call.input = next.input;
  call.output = next.output;
  call.weight = next.weight;
}
/// "all_reduce of 1024 f32, sum"
std::string describe(const Call& call);
/// "all_reduce"; of a part of a call of the user's, the name of that.
std::string name_of_operation(const Call& call);
/// For Call::layout.
uint64_t layout_of(std::span<const uint64_t> counts) noexcept;

/// The first bytes of an operation on every link: proof that both ends run the same call. `digest` shows
/// operation, algorithm, type and reduction in plain bits, so that an error can name the field, and a 44-bit
/// hash of the rest. The weight is sent in weighted reductions only.
struct Header {
  uint64_t sequence, digest;
  double weight;
};
static_assert(sizeof(Header) == 24);
inline constexpr size_t header_bytes = 16, weighted_header_bytes = sizeof(Header);
/// Of this call: with the weight or without.
size_t header_bytes_of(const Call& call) noexcept;

/// Of a call whose header is the same on every link.
Header header_of(const Call& call, uint64_t epoch, uint64_t sequence, uint64_t window);
/// Whether what two ranks exchange is known to these two alone, so that every link has a header of its own.
bool is_pairwise(const Call& call) noexcept;
/// Of such a call: `count` elements go over the link, in its `sequence`-th call of this kind if it is a
/// send_recv.
Header pair_header_of(const Call& call, uint64_t epoch, uint64_t sequence, uint64_t count);
/// Whether it is of a call that all ranks make, and `sequence` the number among those.
bool is_of_all(const Header& header) noexcept;
/// What differs, as "type: f32 here, f64 there"; nothing when the headers are equal.
std::optional<std::string> difference(const Header& ours, const Header& theirs);

}  // namespace rondo::engine
