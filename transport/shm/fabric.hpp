// The shared-memory links of one communicator. How the areas reach their readers is not this file's business:
// adopt() takes what has been received and tested.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "transport/shm/link.hpp"

namespace rondo::shm {

class ShmFabric final : public Fabric {
 public:
  /// `ask` starts the exchange of areas with a peer and returns at once; its outcome comes by adopt() or
  /// refuse().
  using Ask = std::function<void(Rank peer)>;
  ShmFabric(Rank self, std::shared_ptr<Area> mine, Ask ask)
      : self_(self), mine_(std::move(mine)), ask_(std::move(ask)) {}

  /// Lane 0 only.
  Result<Pair> open(Rank peer, Lane lane) noexcept override;
  void arm(bool asleep) noexcept override { set_asleep(*mine_, asleep); }
  void close() noexcept override;
  /// Any thread. `ring` wakes the peer's driver.
  void adopt(Rank peer, std::shared_ptr<const Area> theirs, Ring ring) noexcept;
  void refuse(Rank peer, Error error) noexcept;

 private:
  struct Ends {
    Ends(const Place& place, std::shared_ptr<const Area> area, const Ring& ring)
        : theirs(std::move(area)), tx(place, ring), rx(place, ring) {}
    std::shared_ptr<const Area> theirs;
    ShmTx tx;
    ShmRx rx;
  };
  struct Slot {
    bool asked = false;
    std::unique_ptr<Ends> ends;
    std::optional<Error> error;
  };

  Rank self_;
  std::shared_ptr<Area> mine_;
  Ask ask_;
  std::mutex mutex_;  // slots_ and closed_; the ends themselves belong to the driver
  std::map<Rank, Slot> slots_;
  bool closed_ = false;
};

}  // namespace rondo::shm
