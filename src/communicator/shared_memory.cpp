#include "communicator/shared_memory.hpp"

namespace rondo {

Result<int> SharedMemory::begin(Rank rank, uint32_t world, uint64_t epoch) noexcept {
  auto bell = shm::Bell::make();
  if (!bell) return bell.error();
  auto area = shm::Area::make({epoch, rank, world}, shm::Sizes::for_world(world), (*bell)->name());
  if (!area) return area.error();
  bell_ = std::move(*bell);
  mine_ = std::make_shared<shm::Area>(std::move(*area));
  peers_.resize(world);
  return mine_->descriptor();
}

Result<void> SharedMemory::attach(Rank peer, Descriptor memory) noexcept {
  const shm::Area::Place place{mine_->place().epoch, peer, mine_->place().world};
  auto area = shm::Area::open(std::move(memory), place, mine_->sizes());
  if (!area) return area.error();
  peers_[peer] = std::make_unique<Peer>(*mine_, std::make_shared<shm::Area>(std::move(*area)));
  return peers_[peer]->test.say();
}

void SharedMemory::end(bool shared) noexcept {
  if (shared) {
    mine_->close_descriptor();
    fabric_ = std::make_unique<shm::ShmFabric>(mine_, bell_);
    for (const auto& peer : peers_) {
      if (!peer) continue;
      const auto ring = [bell = bell_, name = peer->area->header().bell] { bell->ring(name); };
      fabric_->adopt(peer->area, ring, shm::SelfTest::used);
    }
  }
  peers_.clear();
  mine_ = nullptr;
  bell_ = nullptr;
}

}  // namespace rondo
