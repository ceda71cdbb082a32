// The shared-memory links of one communicator. How the areas reach their readers is not this file's business:
// adopt() takes what has been received and tested.
#pragma once
#include <memory>
#include <vector>

#include "transport/shm/bell.hpp"
#include "transport/shm/link.hpp"

namespace rondo::shm {

/// What makes it possible to refer to memory instead of copying it; null: every byte is copied. Whoever made
/// them sees to it that the borrower gets its letters, once all peers have been adopted.
struct Loans {
  std::shared_ptr<Lender> lender = nullptr;
  std::shared_ptr<Borrower> borrower = nullptr;
  /// Readers that can pull private memory do so from pieces of this size on.
  size_t pulled = SIZE_MAX;
};

class ShmFabric final : public Fabric {
 public:
  /// `bell`, where given, is silenced before each sleep.
  explicit ShmFabric(std::shared_ptr<Area> mine, std::shared_ptr<Bell> bell = nullptr,
                     const Loans& loans = {});
  ~ShmFabric() override { close(); }

  /// Before anything else is called, for every peer. `ring` wakes the peer's driver; of both links with it
  /// `used` slots are behind them.
  void adopt(std::shared_ptr<const Area> theirs, Ring ring, uint64_t used = 0);

  /// To be watched by the driver's epoll, where there is a bell; else -1.
  int bell() const noexcept { return bell_ ? bell_->descriptor() : -1; }

  /// Bytes of the caller's memory that the readers of all links have been referred to. Driver.
  uint64_t bytes_referred() const noexcept;

  LinkCaps link_caps() const noexcept override { return caps_of(mine_->sizes(), 1); }
  /// Lane 0 only.
  Result<Pair> open(Rank peer, Lane lane) noexcept override;
  Rx* arrived(Rank peer) noexcept override;
  Tx* publication() noexcept override { return publication_ ? &*publication_ : nullptr; }
  /// Any thread: the peer has closed its end.
  bool has_left(Rank peer) const noexcept;
  Rx* publication_of(Rank peer) noexcept override;
  void arm(bool asleep) noexcept override;
  void close() noexcept override;

 private:
  struct Ends {
    Ends(const Area& mine, std::shared_ptr<const Area> area, const Ring& ring, uint64_t used,
         const Loans& loans);
    std::shared_ptr<const Area> theirs;
    Ring ring;
    ShmTx tx;
    ShmRx rx, published;
  };
  std::vector<ShmTx::Reader> everyone() const;

  std::shared_ptr<Area> mine_;
  std::shared_ptr<Bell> bell_;
  const Loans loans_;
  std::vector<std::unique_ptr<Ends>> peers_;  // by rank
  size_t adopted_ = 0;
  std::unique_ptr<ShmTx> publication_;  // once every peer is there
};

}  // namespace rondo::shm
