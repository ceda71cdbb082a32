#include "communicator/shared_memory.hpp"

namespace rondo {

Result<int> SharedMemory::begin(Rank rank, uint32_t world, uint64_t epoch) {
  auto bell = shm::Bell::make();
  if (!bell) return bell.error();
  auto mailbox = shm::Mailbox::make();
  if (!mailbox) return mailbox.error();
  auto sender = shm::Sender::make();
  if (!sender) return sender.error();
  shm::Addresses at{(*bell)->name(), mailbox->name};
  fill_random(at.key);
  auto area = shm::Area::make({epoch, rank, world}, shm::Sizes::for_world(world), at);
  if (!area) return area.error();
  bell_ = std::move(*bell);
  post_.mailbox = std::move(mailbox->descriptor);
  sender_.emplace(std::move(*sender));
  mine_ = std::make_shared<shm::Area>(std::move(*area));
  peers_.resize(world);
  return mine_->descriptor();
}

Result<void> SharedMemory::attach(Rank peer, Descriptor memory) {
  const shm::Area::Place place{mine_->place().epoch, peer, mine_->place().world};
  auto area = shm::Area::open(std::move(memory), place, mine_->sizes());
  if (!area) return area.error();
  peers_[peer] = std::make_unique<Peer>(*mine_, std::make_shared<shm::Area>(std::move(*area)));
  return peers_[peer]->test.say();
}

void SharedMemory::end(bool shared) {
  if (shared) {
    mine_->close_descriptor();
    post_.borrower = std::make_shared<shm::Borrower>(mine_);
    const auto lender =
        std::make_shared<shm::Lender>(mine_, std::move(*sender_), shm::worth_referring(mine_->place().world));
    fabric_ = std::make_unique<shm::ShmFabric>(mine_, bell_,
                                               shm::Loans{lender, post_.borrower, shm::worth_pulling});
    for (const auto& peer : peers_) {
      if (!peer) continue;
      const auto ring = [bell = bell_, name = peer->area->header().at.bell] { bell->ring(name); };
      fabric_->adopt(peer->area, ring, shm::SelfTest::used);
    }
  }
  peers_.clear();
  if (!shared) post_ = {};
  sender_.reset();
  mine_ = nullptr;
  bell_ = nullptr;
}

}  // namespace rondo
