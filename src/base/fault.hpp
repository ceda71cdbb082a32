// What RONDO_FAULT asks to go wrong. The grammar; what comes of it is transport/faulty's business.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "rondo/result.hpp"

namespace rondo {

/// One rank's links misbehave from one of its operations on.
struct Fault {
  enum class Kind : uint8_t { drop, stall, close, corrupt, kill } kind = Kind::drop;
  Rank rank = 0;                            // who misbehaves
  uint64_t operation = 0;                   // when: its call of this number, counted from 1
  std::optional<Rank> peer = std::nullopt;  // towards this one only; else towards all
  std::optional<uint64_t> after = {};       // bytes of that operation's payload that go to a peer unharmed
  std::optional<milliseconds> lasts = {};   // a stall; else for ever
  bool header = false;                      // a corruption: of the operation's header, not its payload
  friend bool operator==(const Fault&, const Fault&) = default;
};

std::string_view name_of(Fault::Kind kind) noexcept;
/// Several are separated by ';'. Errors: invalid_argument, saying what is wrong and what the grammar is.
Result<std::vector<Fault>> parse_faults(std::string_view text, uint32_t world);

}  // namespace rondo
