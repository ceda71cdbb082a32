#include "schedule/verify.hpp"

#include <algorithm>
#include <array>

#include "schedule/hazard.hpp"

namespace rondo::schedule {
namespace {

// A barrier has no elements, hence one empty segment and one window.
bool has_elements(const Claim& claim) { return claim.operation != Operation::barrier; }

std::optional<Fault> unfused_progress(const Program& program, uint32_t slots, Posting posting) {
  const Claim& claim = program.claim;
  return run(program, {slots, 1, std::vector<uint32_t>(claim.chunks, has_elements(claim) ? 2 : 1), posting});
}

std::optional<Fault> fused_progress(const Program& program, uint32_t window, uint32_t slots,
                                    Posting posting) {
  const uint32_t chunks = program.claim.chunks;
  Setting setting{slots, window, std::vector<uint32_t>(chunks, 1), posting};
  if (!has_elements(program.claim)) return run(program, setting);
  for (uint32_t chunk = 0; chunk < chunks; chunk++)
    setting.segments[chunk] = 2 * window + (window + 1) / 2 - (chunk >= (chunks + 1) / 2);
  if (auto stuck = run(program, setting)) return stuck;
  setting.segments.assign(chunks, 0);
  setting.segments[0] = 1;
  return run(program, setting);
}

bool publishes(const Claim& claim) {
  return std::ranges::any_of(claim.steps, [](const std::vector<Step>& steps) {
    return std::ranges::any_of(steps, [](const Step& step) { return bool(step.flags & flag::published); });
  });
}

std::optional<Fault> progress(const Program& program) {
  if (program.form == Form::unfused) {
    for (uint32_t slots : {0u, 1u, unbounded})
      if (auto stuck = unfused_progress(program, slots, Posting::concurrent)) return stuck;
    return std::nullopt;
  }
  for (uint32_t window : proven_windows(program.claim.shape.world))
    if (auto stuck = fused_progress(program, window, window + 1, Posting::concurrent)) return stuck;
  return std::nullopt;
}

}  // namespace

std::span<const uint32_t> proven_windows(uint32_t world) noexcept {
  static constexpr std::array<uint32_t, 8> windows{1, 2, 4, 3, 5, 6, 7, 8};
  return std::span(windows).first(world <= 16 ? 8 : 3);
}

std::optional<Fault> unfused_progress(const Claim& claim, uint32_t slots, Posting posting) {
  return unfused_progress(Program(claim, Form::unfused, Placement::in_place), slots, posting);
}

std::optional<Fault> fused_progress(const Claim& claim, uint32_t window, uint32_t slots, Form form,
                                    Posting posting) {
  return fused_progress(Program(claim, form, Placement::in_place), window, slots, posting);
}

Verdict verify(const Claim& claim) {
  Verdict verdict;
  verdict.wrong = malformed(claim);
  if (verdict.wrong) return verdict;
  for (Placement placement : {Placement::out_of_place, Placement::in_place}) {
    for (Form form : {Form::unfused, Form::fused, Form::published}) {
      if (form == Form::published && !publishes(claim)) continue;  // nothing would differ
      const Program program(claim, form, placement);
      verdict.meaning = interpret(program);
      verdict.wrong = verdict.meaning.wrong;
      if (!verdict.wrong) verdict.wrong = hazard(program);
      // In place is the harder case for progress: sharing memory only adds to what steps wait for.
      if (!verdict.wrong && placement == Placement::in_place) verdict.wrong = progress(program);
      if (verdict.wrong) return verdict;
    }
  }
  // What the joined actions can do their halves can do too, so this only checks the checker.
  if (claim.shape.world <= 16) verdict.wrong = progress(Program(claim, Form::stored, Placement::in_place));
  return verdict;
}

Verdict verify(const Schedule& schedule, const Shape& shape) { return verify(claim_of(schedule, shape)); }

}  // namespace rondo::schedule
