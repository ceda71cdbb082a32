#include "transport/faulty/fabric.hpp"

#include <algorithm>
#include <new>

#include "transport/faulty/link.hpp"

namespace rondo::faulty {

FaultyFabric::FaultyFabric(Fabric& below, Injector& injector, uint32_t world)
    : below_(below), injector_(injector), publications_(world) {
  if (Tx* const published = below.publication())
    publication_ = std::make_unique<FaultyTx>(*published, injector, everyone);
  for (Rank peer = 0; peer < world; peer++)
    if (Rx* const published = below.publication_of(peer))
      publications_[peer] = std::make_unique<FaultyRx>(*published, injector, peer);
}
FaultyFabric::~FaultyFabric() = default;

Result<Fabric::Pair> FaultyFabric::open(Rank peer, Lane lane) noexcept {
  const auto pair = below_.open(peer, lane);
  if (!pair || pair->tx == nullptr) return pair;
  try {
    auto& [tx, rx] = links_[{peer, lane}];
    if (!tx) tx = std::make_unique<FaultyTx>(*pair->tx, injector_, peer);
    if (!rx) rx = std::make_unique<FaultyRx>(*pair->rx, injector_, peer);
    return Pair{tx.get(), rx.get()};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::system, "no memory left", peer};
  }
}

Rx* FaultyFabric::arrived(Rank peer) noexcept {
  if (below_.arrived(peer) == nullptr) return nullptr;
  const auto pair = open(peer, 0);
  return pair ? pair->rx : nullptr;
}

Tx* FaultyFabric::publication() noexcept { return publication_.get(); }
Rx* FaultyFabric::publication_of(Rank peer) noexcept { return publications_[peer].get(); }

}  // namespace rondo::faulty
