#include "transport/shm/fabric.hpp"

#include <fmt/format.h>

#include <cassert>

namespace rondo::shm {

ShmFabric::Ends::Ends(const Area& mine, std::shared_ptr<const Area> area, const Ring& to, uint64_t used)
    : theirs(std::move(area)),
      ring(to),
      tx(mine, theirs->place().rank, {{&theirs->row(mine.place().rank).link, &theirs->header(), to}}, used),
      rx(mine, mine.row(theirs->place().rank).link, {theirs.get(), mine.place().rank, to}, 1, used),
      published(mine, mine.row(theirs->place().rank).of_publication, {theirs.get(), theirs->place().rank, to},
                mine.place().world - 1) {}

ShmFabric::ShmFabric(std::shared_ptr<Area> mine, std::shared_ptr<Bell> bell)
    : mine_(std::move(mine)), bell_(std::move(bell)), peers_(mine_->place().world) {}

void ShmFabric::adopt(std::shared_ptr<const Area> theirs, Ring ring, uint64_t used) {
  const Rank peer = theirs->place().rank;
  assert(peer < peers_.size() && !peers_[peer] && peer != mine_->place().rank);
  peers_[peer] = std::make_unique<Ends>(*mine_, std::move(theirs), ring, used);
  if (++adopted_ + 1 == peers_.size())
    publication_ = std::make_unique<ShmTx>(*mine_, mine_->place().rank, everyone());
}

std::vector<ShmTx::Reader> ShmFabric::everyone() const {
  std::vector<ShmTx::Reader> readers;
  for (const auto& peer : peers_)
    if (peer)
      readers.push_back(
          {&peer->theirs->row(mine_->place().rank).of_publication, &peer->theirs->header(), peer->ring});
  return readers;
}

Result<Fabric::Pair> ShmFabric::open(Rank peer, [[maybe_unused]] Lane lane) noexcept {
  assert(lane == 0);
  if (peer < peers_.size() && peers_[peer]) return Pair{&peers_[peer]->tx, &peers_[peer]->rx};
  return Error{ErrorCode::system, fmt::format("no memory is shared with rank {}", peer), peer};
}

Rx* ShmFabric::publication_of(Rank peer) noexcept {
  return publication_ && peer < peers_.size() && peers_[peer] ? &peers_[peer]->published : nullptr;
}

void ShmFabric::arm(bool asleep) noexcept {
  if (asleep && bell_) bell_->silence();
  set_asleep(*mine_, asleep);
}

void ShmFabric::close() noexcept {
  if (publication_) publication_->close();
  for (const auto& peer : peers_) {
    if (!peer) continue;
    peer->tx.close();
    peer->rx.close();
    peer->published.close();
  }
}

}  // namespace rondo::shm
