#include "communicator/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/root_address.hpp"

namespace rondo {

Error as_parent_sees(Error error, std::span<const Rank> members) {
  constexpr size_t most_listed = 16;
  const auto listed = members.first(std::min(members.size(), most_listed));
  std::string peer;
  if (error.peer && *error.peer < members.size()) {
    peer = fmt::format("; its rank {} is rank {} here", *error.peer, members[*error.peer]);
    error.peer = members[*error.peer];
  }
  error.message = fmt::format("in the new communicator of ranks {}{}: {}{}", fmt::join(listed, ", "),
                              listed.size() < members.size() ? ", ..." : "", error.message, peer);
  return error;
}

Choice choice_of(std::optional<uint32_t> color, int64_t key) {
  return {key, color.value_or(0), color ? 1u : 0u};
}

Part part_of(std::span<const Choice> choices, Rank rank) {
  const Choice& own = choices[rank];
  assert(own.taken);
  Part part{};
  for (Rank other = 0; other < choices.size(); other++)
    if (choices[other].taken && choices[other].color == own.color) part.members.push_back(other);
  std::stable_sort(part.members.begin(), part.members.end(),
                   [&](Rank a, Rank b) { return choices[a].key < choices[b].key; });
  part.rank = Rank(std::find(part.members.begin(), part.members.end(), rank) - part.members.begin());
  return part;
}

Invitation invitation_to(const Result<bootstrap::Meeting>& meeting) {
  Invitation invitation{};
  const std::string& text = meeting ? meeting->root : meeting.error().message;
  const bool fits = text.size() < invitation.text.size();
  if (meeting && fits) invitation.tag = meeting->tag;
  std::memcpy(invitation.text.data(), text.data(), std::min(text.size(), invitation.text.size() - 1));
  return invitation;
}

Result<bootstrap::Meeting> accept(const Invitation& invitation, Rank leader) {
  const std::string text(invitation.text.data(), strnlen(invitation.text.data(), invitation.text.size()));
  if (invitation.tag != 0) {
    if (text.size() == invitation.text.size() || !parse_root(text))
      return Error{ErrorCode::system, fmt::format("rank {} has sent an invitation without a root", leader),
                   leader};
    return bootstrap::Meeting{text, invitation.tag, nullptr, nullptr};
  }
  return Error{ErrorCode::system,
               fmt::format("rank {} cannot listen for the new communicator: {}", leader, text), leader};
}

}  // namespace rondo
