// A communicator's part in the exchange of shared memory: makes this rank's area, maps and tests those of its
// peers, and keeps the links when all ranks use them.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "bootstrap/job.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/shm/self_test.hpp"

namespace rondo {

/// The service thread calls it until join returns; after that, the driver has what it made.
class SharedMemory final : public bootstrap::Sharing {
 public:
  Result<int> begin(Rank rank, uint32_t world, uint64_t epoch) override;
  Result<void> attach(Rank peer, Descriptor memory) override;
  Result<void> check(Rank peer) override { return peers_[peer]->test.hear(); }
  Result<void> confirm(Rank peer) override { return peers_[peer]->test.done(); }
  void end(bool shared) override;

  /// The links, once, where the ranks share memory.
  std::unique_ptr<shm::ShmFabric> take_fabric() noexcept { return std::move(fabric_); }
  /// With them: who reads the letters of those that lend memory, and where they arrive.
  struct Post {
    std::shared_ptr<shm::Borrower> borrower;
    Descriptor mailbox;
  };
  Post take_post() noexcept { return std::move(post_); }

 private:
  struct Peer {
    Peer(const shm::Area& mine, std::shared_ptr<const shm::Area> theirs)
        : area(std::move(theirs)), test(mine, *area) {}
    std::shared_ptr<const shm::Area> area;
    shm::SelfTest test;
  };

  std::shared_ptr<shm::Bell> bell_;
  std::shared_ptr<shm::Area> mine_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank
  std::unique_ptr<shm::ShmFabric> fabric_;
  std::optional<shm::Sender> sender_;
  Post post_;
};

}  // namespace rondo
