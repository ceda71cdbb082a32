// The flight recorder: the last operations of a communicator, kept in a fixed ring so that a time-out can
// tell what this rank was doing.
#pragma once
#include <array>
#include <string>

#include "base/clock.hpp"
#include "engine/call.hpp"

namespace rondo::engine {

class Recorder {
 public:
  enum class Outcome : uint8_t { running, done, failed };

  void begin(uint64_t sequence, const Call& call) noexcept {
    at(sequence) = {sequence, call, Clock::now(), {}, {}};
  }
  void end(uint64_t sequence, bool ok) noexcept {
    at(sequence).ended = Clock::now();
    at(sequence).outcome = ok ? Outcome::done : Outcome::failed;
  }
  /// "#7 all_reduce of 1024 f32, sum: done in 0.2 ms; #8 ...", the last `most` operations, newest last.
  std::string text(uint64_t sequence, size_t most) const;

 private:
  struct Entry {
    uint64_t sequence = 0;
    Call call{};
    TimePoint began, ended;
    Outcome outcome = Outcome::running;
  };
  Entry& at(uint64_t sequence) noexcept { return entries_[sequence % entries_.size()]; }

  std::array<Entry, 64> entries_;
};

}  // namespace rondo::engine
