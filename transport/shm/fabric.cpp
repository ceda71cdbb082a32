#include "transport/shm/fabric.hpp"

#include <cassert>

namespace rondo::shm {

Result<Fabric::Pair> ShmFabric::open(Rank peer, [[maybe_unused]] Lane lane) noexcept {
  assert(lane == 0);
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[peer];
    if (slot.error) return *slot.error;
    if (slot.ends) return Pair{&slot.ends->tx, &slot.ends->rx};
    if (std::exchange(slot.asked, true)) return Pair{};
  }
  ask_(peer);
  return Pair{};
}

void ShmFabric::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [peer, slot] : slots_)
    if (slot.ends) slot.ends->tx.close();
}

void ShmFabric::adopt(Rank peer, std::shared_ptr<const Area> theirs, Ring ring) noexcept {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[peer];
  if (closed_ || slot.ends) return;
  const Place place{mine_.get(), theirs.get(), self_, peer};
  slot.ends = std::make_unique<Ends>(place, std::move(theirs), ring);
}

void ShmFabric::refuse(Rank peer, Error error) noexcept {
  const std::lock_guard lock(mutex_);
  slots_[peer].error = std::move(error);
}

}  // namespace rondo::shm
