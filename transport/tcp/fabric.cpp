#include "transport/tcp/fabric.hpp"

#include <new>

namespace rondo::tcp {

Result<Fabric::Pair> TcpFabric::open(Rank peer, Lane lane) noexcept {
  bool ask = false;
  try {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[{peer, lane}];
    if (slot.error) return *slot.error;
    if (slot.connection) return Pair{&slot.connection->tx(), &slot.connection->rx()};
    ask = !std::exchange(slot.asked, true);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::system, "no memory left", peer};
  }
  if (ask) connect_(peer, lane);
  return Pair{};
}

Rx* TcpFabric::arrived(Rank peer) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find({peer, Lane(0)});
  return found != slots_.end() && found->second.connection ? &found->second.connection->rx() : nullptr;
}

void TcpFabric::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [key, slot] : slots_)
    if (slot.connection) slot.connection->close();
}

void TcpFabric::adopt(Rank peer, Lane lane, Result<Stream> stream) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[{peer, lane}];
  if (closed_ || slot.connection) return;
  if (stream)
    slot.connection = std::make_unique<Connection>(std::move(*stream), sizes_);
  else
    slot.error = stream.error();
}

}  // namespace rondo::tcp
