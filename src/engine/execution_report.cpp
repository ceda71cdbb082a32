// What an execution says of itself when it cannot go on.
#include <fmt/format.h>

#include <algorithm>

#include "engine/execution.hpp"

namespace rondo::engine {

// A link that sends is not through before the peer has released what was sent.
bool Execution::is_pending(size_t i) const noexcept {
  const LinkRun& link = links_[i];
  return !link.done || (program_->links[i].sends && link.peer->tx->completed() < link.peer->accepted);
}

// Whether bytes of this call have still to come or to go. What else a link waits for, such as the turn of a chunk that
// is empty, concerns the peer no more: it may have ended its own call, and left.
bool Execution::needs_peer(size_t i) const noexcept {
  const LinkRun& link = links_[i];
  const LinkQueue& queue = program_->links[i];
  if (queue.sends && link.peer->tx->completed() < link.peer->accepted) return true;
  if (link.header_bytes < header_bytes_) return true;
  return std::ranges::any_of(queue.ops, [&](uint32_t at) {
    const OpRun& run = ops_[at];
    return queue.sends ? run.out_bytes < run.count * run.out_width : run.in_bytes < run.count * run.in_width;
  });
}

std::optional<Error> Execution::failure() const {
  if (mismatch_) return mismatch_;
  for (size_t i = 0; i < links_.size(); i++) {
    const LinkRun& link = links_[i];
    const auto& queue = program_->links[i];
    if (!is_pending(i)) continue;
    const LinkState state = queue.sends ? link.peer->tx->poll() : link.peer->rx->poll();
    // The poll may have found out that the peer has released the last of what was sent.
    if (state == LinkState::open || !needs_peer(i)) continue;
    if (queue.sends && queue.published)
      return Error{ErrorCode::peer_lost, "a rank closed its end of what this one publishes"};
    return Error{ErrorCode::peer_lost,
                 fmt::format("rank {} {} in the middle of the operation", queue.peer,
                             state == LinkState::closed ? "closed its connection" : "dropped its connection"),
                 queue.peer};
  }
  return std::nullopt;
}

std::string Execution::waiting_for() const {
  std::string text;
  for (size_t i = 0; i < links_.size(); i++) {
    const LinkRun& link = links_[i];
    const auto& queue = program_->links[i];
    if (!is_pending(i)) continue;
    text += text.empty() ? "" : "; ";
    if (queue.sends && queue.published)
      text += "not all ranks have taken what this rank publishes";
    else if (queue.sends)
      text += fmt::format("rank {} has not taken all that this rank sends", queue.peer);
    else if (link.header_bytes < header_bytes_)
      text += fmt::format("nothing of this operation has come from rank {}", queue.peer);
    else
      text += fmt::format("rank {} has sent {} of {} bytes of chunk {}", queue.peer,
                          ops_[queue.ops[link.next]].in_bytes,
                          ops_[queue.ops[link.next]].count * ops_[queue.ops[link.next]].in_width,
                          program_->ops[queue.ops[link.next]].chunk);
  }
  return text;
}

// A rank from which something has come has made the call, and may itself be waiting: first those that may not have.
std::optional<Rank> Execution::first_awaited() const {
  const auto receives = [this](size_t i) { return !program_->links[i].sends && !links_[i].done; };
  for (size_t i = 0; i < links_.size(); i++)
    if (receives(i) && !has_called(program_->links[i].peer)) return program_->links[i].peer;
  for (size_t i = 0; i < links_.size(); i++)
    if (receives(i)) return program_->links[i].peer;
  for (size_t i = 0; i < links_.size(); i++)
    if (is_pending(i) && !program_->links[i].published) return program_->links[i].peer;
  return std::nullopt;
}

bool Execution::has_called(Rank peer) const {
  for (size_t i = 0; i < links_.size(); i++)
    if (!program_->links[i].sends && program_->links[i].peer == peer && links_[i].header_bytes > 0)
      return true;
  return false;
}

}  // namespace rondo::engine
