#include "engine/recorder.hpp"

#include <fmt/format.h>

namespace rondo::engine {
namespace {

double milliseconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

std::string Recorder::text(uint64_t sequence, size_t most) const {
  std::string text;
  const uint64_t known = std::min<uint64_t>({sequence, most, entries_.size()});
  for (uint64_t s = sequence - known + 1; s <= sequence; s++) {
    const Entry& entry = entries_[s % entries_.size()];
    if (entry.sequence != s) continue;
    const bool running = entry.outcome == Outcome::running;
    const double took = milliseconds_between(entry.began, running ? Clock::now() : entry.ended);
    const char* outcome = running                          ? "running for"
                          : entry.outcome == Outcome::done ? "done in"
                                                           : "failed after";
    text += fmt::format("{}#{} {}: {} {:.1f} ms", text.empty() ? "" : "; ", s, describe(entry.call), outcome,
                        took);
  }
  return text;
}

}  // namespace rondo::engine
