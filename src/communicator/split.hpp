// What ranks tell each other to become the parts of a communicator. Pure.
//
//   all-gather of Choice      -> everybody knows who is in which part, and in which order
//   all-gather of Invitation  -> everybody knows where the rank 0 of its part listens
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/meeting.hpp"
#include "rondo/result.hpp"

namespace rondo {

struct Choice {
  int64_t key;
  uint32_t color, taken;  // taken 0: in no part
};
static_assert(sizeof(Choice) == 16);

struct Invitation {
  uint64_t tag;                // 0: it could not listen, and the text says why
  std::array<char, 312> text;  // its root, ended by a zero
};
static_assert(sizeof(Invitation) == 320);

struct Part {
  std::vector<Rank> members;  // by new rank: (key, old rank) in order
  Rank rank;                  // the new rank of this one
};

/// Why the part of these members could not be made, told in its own ranks, as an error of the communicator that
/// was split: its peer is a rank of that one, and its text says whose ranks it names.
Error as_parent_sees(Error error, std::span<const Rank> members);

Choice choice_of(std::optional<uint32_t> color, int64_t key);
/// The part of `rank`, which has taken one.
Part part_of(std::span<const Choice> choices, Rank rank);

Invitation invitation_to(const Result<bootstrap::Meeting>& meeting);
/// Root and tag, or why `leader`, which sent it, does not listen.
Result<bootstrap::Meeting> accept(const Invitation& invitation, Rank leader);

}  // namespace rondo
