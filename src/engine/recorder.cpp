#include "engine/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rondo::engine {
namespace {

// What the words of a slot hold.
enum Word : size_t {
  sequence,
  collective,
  sent,
  received,
  kind,
  count,
  peers,
  tag,
  vectors,
  layout,
  began,
  ended,
  outcome
};

uint64_t ticks(TimePoint time) { return uint64_t(time.time_since_epoch().count()); }
TimePoint time_of(uint64_t ticks) { return TimePoint(TimePoint::duration(int64_t(ticks))); }

constexpr uint64_t has_parts = 1ull << 40, is_reproducible = 1ull << 41;
constexpr unsigned part_of_shift = 42, part_of_mask = 3;

// Operation, type, reduction and algorithm, a byte each, and flags; the root shares the word of the peers.
uint64_t packed(const Call& call) {
  return uint64_t(call.operation) | uint64_t(call.type) << 8 | uint64_t(call.reduction) << 16 |
         uint64_t(*call.algorithm) << 24 | (call.parts ? has_parts : 0) |
         (call.reproducible ? is_reproducible : 0) | uint64_t(call.part_of) << part_of_shift;
}

}  // namespace

void Recorder::Slot::write(const std::array<uint64_t, words>& data) noexcept {
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  for (size_t i = 0; i < words; i++) data_[i].store(data[i], std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

void Recorder::Slot::end(uint64_t when, Record::Outcome how) noexcept {
  data_[ended].store(when, std::memory_order_relaxed);
  data_[outcome].store(uint64_t(how), std::memory_order_release);
}

bool Recorder::Slot::read(std::array<uint64_t, words>& data) const noexcept {
  const uint64_t before = version_.load(std::memory_order_acquire);
  data[outcome] = data_[outcome].load(std::memory_order_acquire);
  for (size_t i = 0; i < outcome; i++) data[i] = data_[i].load(std::memory_order_acquire);
  return before % 2 == 0 && version_.load(std::memory_order_relaxed) == before;
}

void Recorder::begin(const Ordinals& ordinals, const Call& call, TimePoint when) {
  const size_t at = ordinals.sequence % capacity;
  if (call.parts) {
    const std::lock_guard lock(parts_mutex_);
    parts_[at] = call.parts;
  }
  const bool pair = call.operation == schedule::Operation::send_recv;
  slots_[at].write({ordinals.sequence, ordinals.collective, ordinals.sent, ordinals.received, packed(call),
                    call.count, pair ? uint64_t(call.to) << 32 | call.from : call.root, call.tag,
                    call.vectors, call.layout, ticks(when), 0, uint64_t(Record::Outcome::running)});
  last_.store(ordinals.sequence, std::memory_order_release);
}

void Recorder::end(bool ok) noexcept {
  const uint64_t last = last_.load(std::memory_order_relaxed);
  slots_[last % capacity].end(ticks(Clock::now()), ok ? Record::Outcome::done : Record::Outcome::failed);
}

std::optional<Record> Recorder::at(uint64_t wanted) const {
  const size_t at = wanted % capacity;
  std::array<uint64_t, Slot::words> data;
  std::shared_ptr<const schedule::Parts> parts;
  {
    const std::lock_guard lock(parts_mutex_);
    parts = parts_[at];
  }
  if (wanted == 0 || !slots_[at].read(data) || data[sequence] != wanted) return std::nullopt;
  Record record{{data[sequence], data[collective], data[sent], data[received]},
                {},
                time_of(data[began]),
                time_of(data[ended]),
                Record::Outcome(data[outcome])};
  Call& call = record.call;
  call.operation = schedule::Operation(data[kind] & 0xff);
  call.type = DataType(data[kind] >> 8 & 0xff);
  call.reduction = Reduction(data[kind] >> 16 & 0xff);
  call.algorithm = schedule::Algorithm(data[kind] >> 24 & 0xff);
  call.count = data[count];
  call.reproducible = (data[kind] & is_reproducible) != 0;
  call.part_of = PartOf(data[kind] >> part_of_shift & part_of_mask);
  call.tag = data[tag];
  call.vectors = data[vectors];
  call.layout = data[layout];
  if (data[kind] & has_parts) call.parts = std::move(parts);
  if (call.operation == schedule::Operation::send_recv) {
    call.to = Rank(data[peers] >> 32);
    call.from = Rank(data[peers]);
  } else {
    call.root = Rank(data[peers]);
  }
  return record;
}

std::string describe(const Record& record) {
  const bool running = record.outcome == Record::Outcome::running;
  const char* how = running                                   ? "running for"
                    : record.outcome == Record::Outcome::done ? "done in"
                                                              : "failed after";
  const auto took = (running ? Clock::now() : record.ended) - record.began;
  return fmt::format("{}: {} {:.1f} ms", describe(record.call), how,
                     std::chrono::duration<double, std::milli>(took).count());
}

std::optional<Record> Recorder::of_collective(uint64_t number) const {
  for (uint64_t newest = last(), s = newest; s > 0 && s + capacity > newest; s--)
    if (auto record = at(s); record && record->collective == number) return record;
  return std::nullopt;
}

std::string Recorder::text(size_t most) const {
  std::string text;
  const uint64_t newest = last(), known = std::min<uint64_t>({newest, most, capacity});
  for (uint64_t s = newest - known + 1; s <= newest; s++)
    if (const auto record = at(s))
      text += fmt::format("{}#{} {}", text.empty() ? "" : "; ", s, describe(*record));
  return text;
}

}  // namespace rondo::engine
