// Proves a schedule: that it computes what its operation promises, always gets on, and never overwrites
// memory that is in use. Every schedule of the catalogue is proven for every world from 1 to 64 in every test
// run.
#pragma once
#include "schedule/machine.hpp"
#include "schedule/meaning.hpp"

namespace rondo::schedule {

struct Verdict {
  std::optional<Fault> wrong;
  Meaning meaning;  // for a reduction, the order in which each chunk is summed

  bool ok() const noexcept { return !wrong; }
  /// Names rank and step and says what is wrong in one sentence; empty when nothing is.
  std::string counter_example() const { return wrong ? wrong->sentence : std::string(); }
  /// How `chunk` of a reduction is summed: "0+((1+2)+3)".
  std::string order(uint32_t chunk) const { return meaning.values.tree(meaning.chunks.at(chunk)); }
};

/// All the proofs below, for one world and one root: results, widths and finishes and hazards, in and out of
/// place, unfused, fused and with publications; progress unfused with links of 0, 1 and unbounded messages, and fused for
/// windows W with W+1 slots.
Verdict verify(const Claim& claim);
Verdict verify(const Schedule& schedule, const Shape& shape);

/// Progress of the steps themselves over two windows of one segment.
std::optional<Fault> unfused_progress(const Claim& claim, uint32_t slots,
                                      Posting posting = Posting::concurrent);
/// Progress of fused actions over three windows, of which the last is short and shorter for the later chunks,
/// and again with one segment in chunk 0 and all other chunks empty.
std::optional<Fault> fused_progress(const Claim& claim, uint32_t window, uint32_t slots,
                                    Form form = Form::fused, Posting posting = Posting::concurrent);
/// The windows for which `verify` proves fused progress: 1 to 8 in worlds of up to 16 ranks, 1, 2 and 4 above.
std::span<const uint32_t> proven_windows(uint32_t world) noexcept;

}  // namespace rondo::schedule
