// The flight recorder: the last operations of a communicator, kept in a fixed ring, so that whoever asks learns
// what this rank is doing and has done.
#pragma once
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "engine/call.hpp"

namespace rondo::engine {

/// Which one it is.
struct Ordinals {
  uint64_t sequence = 0;            // of all operations of this rank
  uint64_t collective = 0;          // of the collectives; 0: it is none
  uint64_t sent = 0, received = 0;  // of the send_recvs with call.to, and with call.from
};

/// One operation as it was called.
struct Record : Ordinals {
  enum class Outcome : uint8_t { running, done, failed };
  Call call{};             // without its buffers
  TimePoint began, ended;  // ended: not yet, while it runs
  Outcome outcome = Outcome::running;
};

/// "all_reduce of 1024 f32, sum: done in 0.2 ms"
std::string describe(const Record& record);

/// The driver writes, any thread reads. What is overwritten during a read is not there.
class Recorder {
 public:
  static constexpr size_t capacity = 64;

  void begin(const Ordinals& ordinals, const Call& call, TimePoint when);
  /// Of the last operation begun.
  void end(bool ok) noexcept;

  /// The last operation begun; 0: there was none.
  uint64_t last() const noexcept { return last_.load(std::memory_order_acquire); }
  std::optional<Record> at(uint64_t sequence) const;
  /// The collective of this number, if it is among the last operations.
  std::optional<Record> of_collective(uint64_t number) const;
  /// The last `most`, newest last: "#7 all_reduce of 1024 f32, sum: done in 0.2 ms; #8 ..."
  std::string text(size_t most) const;

 private:
  // A seqlock whose data are atomic: the writer makes the version odd and even again, its stores release and
  // the reader's loads acquire, so that a reader that sees one new word sees an odd or a later version after it.
  class Slot {
   public:
    static constexpr size_t words = 13;
    void write(const std::array<uint64_t, words>& data) noexcept;
    void end(uint64_t when, Record::Outcome outcome) noexcept;
    bool read(std::array<uint64_t, words>& data) const noexcept;

   private:
    std::atomic<uint64_t> version_{0};
    std::array<std::atomic<uint64_t>, words> data_{};
  };

  std::array<Slot, capacity> slots_;
  std::atomic<uint64_t> last_{0};
  mutable std::mutex parts_mutex_;  // of uneven operations only
  std::array<std::shared_ptr<const schedule::Parts>, capacity> parts_;
};

}  // namespace rondo::engine
