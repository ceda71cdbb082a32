#include "transport/shm/fabric.hpp"

#include <fmt/format.h>

#include <cassert>

namespace rondo::shm {

ShmFabric::Ends::Ends(const Area& mine, std::shared_ptr<const Area> area, const Ring& to, uint64_t used,
                      const Loans& loans)
    : theirs(std::move(area)),
      ring(to),
      tx(mine, theirs->place().rank,
         {{&theirs->row(mine.place().rank).link, &theirs->header(), to,
           &theirs->row(mine.place().rank).mapped}},
         used, loans.lender),
      rx(mine, mine.row(theirs->place().rank).link, {theirs.get(), mine.place().rank, to, loans.borrower}, 1,
         used),
      published(mine, mine.row(theirs->place().rank).of_publication,
                {theirs.get(), theirs->place().rank, to, loans.borrower}, mine.place().world - 1) {}

ShmFabric::ShmFabric(std::shared_ptr<Area> mine, std::shared_ptr<Bell> bell, const Loans& loans)
    : mine_(std::move(mine)), bell_(std::move(bell)), loans_(loans), peers_(mine_->place().world) {}

void ShmFabric::adopt(std::shared_ptr<const Area> theirs, Ring ring, uint64_t used) {
  const Rank peer = theirs->place().rank;
  assert(peer < peers_.size() && !peers_[peer] && peer != mine_->place().rank);
  if (loans_.lender) loans_.lender->add(theirs);
  if (loans_.borrower) loans_.borrower->add(theirs);
  peers_[peer] = std::make_unique<Ends>(*mine_, std::move(theirs), ring, used, loans_);
  if (++adopted_ + 1 == peers_.size())
    publication_ = std::make_unique<ShmTx>(*mine_, mine_->place().rank, everyone(), 0, loans_.lender);
}

std::vector<ShmTx::Reader> ShmFabric::everyone() const {
  std::vector<ShmTx::Reader> readers;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    const Row& row = peer->theirs->row(mine_->place().rank);
    readers.push_back({&row.of_publication, &peer->theirs->header(), peer->ring, &row.mapped});
  }
  return readers;
}

uint64_t ShmFabric::bytes_referred() const noexcept {
  uint64_t bytes = publication_ ? publication_->bytes_referred() : 0;
  for (const auto& peer : peers_) bytes += peer ? peer->tx.bytes_referred() : 0;
  return bytes;
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
