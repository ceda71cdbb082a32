// The links of a communicator, put around those of any transport: they do what the injector says, and
// otherwise what the ones below them do.
//
//   engine --> FaultyTx --> ShmTx, SocketTx      FaultyRx --> ShmRx, SocketRx
//                 |                                 |
//                 +------- Injector: now? ----------+
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "transport/faulty/injector.hpp"
#include "transport/link.hpp"

namespace rondo::faulty {

class FaultyTx;
class FaultyRx;

/// Driver, except close(). Fabric and injector outlive it.
class FaultyFabric final : public Fabric {
 public:
  /// `world`: of `below`, which has its publications already.
  FaultyFabric(Fabric& below, Injector& injector, uint32_t world);
  ~FaultyFabric() override;

  LinkCaps link_caps() const noexcept override { return below_.link_caps(); }
  Result<Pair> open(Rank peer, Lane lane) noexcept override;
  Rx* arrived(Rank peer) noexcept override;
  Tx* publication() noexcept override;
  Rx* publication_of(Rank peer) noexcept override;
  void arm(bool asleep) noexcept override { below_.arm(asleep); }
  void close() noexcept override { below_.close(); }

 private:
  Fabric& below_;
  Injector& injector_;
  std::map<std::pair<Rank, Lane>, std::pair<std::unique_ptr<FaultyTx>, std::unique_ptr<FaultyRx>>> links_;
  std::unique_ptr<FaultyTx> publication_;
  std::vector<std::unique_ptr<FaultyRx>> publications_;  // by rank
};

}  // namespace rondo::faulty
