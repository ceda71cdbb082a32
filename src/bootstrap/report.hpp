// What ranks tell each other about their calls when one of them makes no progress: rank 0 asks all of them
// about one call and compares (see inquiry.hpp). Pure: types and their bytes. The control plane does not know
// what the fields of a call mean.
#pragma once
#include <chrono>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/bytes.hpp"
#include "rondo/result.hpp"

namespace rondo::bootstrap {

/// Names one call so that every rank which takes part in it means the same: the number-th of the collectives of
/// a communicator, or of what one rank sends to another.
struct CallKey {
  uint64_t space = 0;  // 0: collectives; else pair_space()
  uint64_t number = 0;
  auto operator<=>(const CallKey&) const = default;
};
constexpr uint64_t pair_space(Rank from, Rank to) { return (uint64_t(from) + 1) << 32 | to; }
constexpr Rank sender_of(const CallKey& key) { return Rank((key.space >> 32) - 1); }
constexpr Rank receiver_of(const CallKey& key) { return Rank(key.space); }

struct Field {
  std::string name, value;
  friend bool operator==(const Field&, const Field&) = default;
};
/// A call as one rank made it. Ranks agree if their fields are equal.
struct CallNote {
  std::string text;
  std::vector<Field> fields;
  friend bool operator==(const CallNote&, const CallNote&) = default;
};
/// What a rank has to say about one call, and about itself.
struct Account {
  std::optional<CallNote> call;  // nothing: not called yet, or so long ago that it is forgotten
  bool passed = false;           // called, or called later ones already
  std::string last;              // the last operation here, "" where there was none
  bool running = false;          // it is under way
  uint32_t for_ms = 0;           // since it began, if it is under way; else since it ended
  friend bool operator==(const Account&, const Account&) = default;
};
/// Rank -> root.
struct Report {
  enum class Reason : uint8_t {
    asked = 0,  // the root wants to know
    quiet = 1,  // nothing has moved for a while
    ends = 2,   // the call ends with an error of this rank's own, which waits for a Summary
  };
  Reason reason = Reason::asked;
  CallKey key;
  Account account;
  friend bool operator==(const Report&, const Report&) = default;
};
/// A rank that has not answered rank 0 by then is said not to answer.
inline constexpr std::chrono::milliseconds answer_patience{200};
/// Root -> a rank whose call ends: whom everybody waits for. The ranks do not disagree.
struct Summary {
  CallKey key;
  std::optional<Rank> peer;  // to blame first
  std::string text;
  friend bool operator==(const Summary&, const Summary&) = default;
};

inline constexpr size_t longest_call_text = 256, most_fields = 16, longest_name = 32, longest_value = 160,
                        longest_summary = 2048;

Bytes encode(const CallKey&);
std::optional<CallKey> decode_key(std::span<const std::byte>);
Bytes encode(const Report&);
std::optional<Report> decode_report(std::span<const std::byte>);
Bytes encode(const Summary&);
std::optional<Summary> decode_summary(std::span<const std::byte>);

}  // namespace rondo::bootstrap
