#include "transport/shm/fabric.hpp"

#include <fmt/format.h>

#include <cassert>

namespace rondo::shm {
namespace {

ShmTx::Reader reader_of(const Area& mine, const Area& theirs, Reading Row::*reading, const Ring& ring) {
  const Row& row = theirs.row(mine.place().rank);
  return {&(row.*reading), &theirs.header(), ring, &row.mapped,
          row.pulls.load(std::memory_order_seq_cst) != 0};
}

}  // namespace

ShmFabric::Ends::Ends(const Area& mine, std::shared_ptr<const Area> area, const Ring& to, uint64_t used,
                      const Loans& loans)
    : theirs(std::move(area)),
      ring(to),
      tx(mine, theirs->place().rank, {reader_of(mine, *theirs, &Row::link, to)}, used, loans.lender,
         loans.pulled),
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
    publication_ =
        std::make_unique<ShmTx>(*mine_, mine_->place().rank, everyone(), 0, loans_.lender, loans_.pulled);
}

std::vector<ShmTx::Reader> ShmFabric::everyone() const {
  std::vector<ShmTx::Reader> readers;
  for (const auto& peer : peers_) {
    if (peer) readers.push_back(reader_of(*mine_, *peer->theirs, &Row::of_publication, peer->ring));
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

Rx* ShmFabric::arrived(Rank peer) noexcept {
  return peer < peers_.size() && peers_[peer] ? &peers_[peer]->rx : nullptr;
}

Rx* ShmFabric::publication_of(Rank peer) noexcept {
  return publication_ && peer < peers_.size() && peers_[peer] ? &peers_[peer]->published : nullptr;
}

bool ShmFabric::has_left(Rank peer) const noexcept {
  return peer >= peers_.size() || !peers_[peer] ||
         peers_[peer]->theirs->row(mine_->place().rank).closed.load(std::memory_order_acquire) != 0;
}

void ShmFabric::arm(bool asleep) noexcept {
  if (asleep && bell_) bell_->silence();
  set_asleep(*mine_, asleep);
}

// What the peers have not read by now they are not to read: it is the callers' memory again soon.
void ShmFabric::close() noexcept {
  mine_->withdraw();
  if (publication_) publication_->close();
  for (const auto& peer : peers_) {
    if (!peer) continue;
    peer->tx.close();
    peer->rx.close();
    peer->published.close();
  }
}

}  // namespace rondo::shm
