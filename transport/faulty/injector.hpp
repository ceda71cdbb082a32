// Faults on purpose, for users' own tests: which of this rank's links misbehave at this moment. The links ask
// (faulty/link.hpp); they exist only where a fault is configured, so it costs nothing where none is.
#pragma once
#include <array>
#include <vector>

#include "base/fault.hpp"

namespace rondo::faulty {

/// Towards whom a publication goes: a fault of any peer strikes it.
inline constexpr Rank everyone = 0xffffffff;

/// Driver thread.
class Injector {
 public:
  /// Takes the faults of this rank.
  Injector(Rank rank, const std::vector<Fault>& faults);

  /// This rank's next operation begins; the header of its stream has so many bytes. A fault without `after`
  /// strikes now.
  void begin(size_t header_bytes) noexcept;
  uint64_t operation() const noexcept { return operation_; }

  /// A link to `peer` has carried so many bytes of this operation: strikes what was to happen by now.
  void carried(Rank peer, uint64_t bytes) noexcept;
  /// How many bytes it may carry before that has to be asked again.
  uint64_t unharmed(Rank peer, uint64_t bytes) const noexcept;

  bool drops(Rank peer) const noexcept { return is_struck(Fault::Kind::drop, peer); }
  bool closes(Rank peer) const noexcept { return is_struck(Fault::Kind::close, peer); }
  bool stalls(Rank peer) const noexcept;
  /// When the first stall under way ends: something may move then.
  TimePoint wake_at() const noexcept;

  /// Which of the `bytes` bytes from position `from` of the operation's stream is to be flipped.
  std::optional<uint64_t> corrupts(Rank peer, uint64_t from, uint64_t bytes) const noexcept;
  /// The link has flipped it.
  void corrupted(Rank peer, uint64_t position) noexcept;

 private:
  struct State {
    Fault fault;
    bool struck = false;
    TimePoint over = TimePoint::max();  // of a stall
  };
  bool is_due(const State& state, Rank peer) const noexcept;
  uint64_t position(const Fault& fault) const noexcept;
  bool is_struck(Fault::Kind kind, Rank peer) const noexcept;
  void strike(State& state, Rank peer, uint64_t at) noexcept;

  const Rank rank_;
  uint64_t operation_ = 0, header_bytes_ = 0;
  std::vector<State> states_;
};

}  // namespace rondo::faulty
