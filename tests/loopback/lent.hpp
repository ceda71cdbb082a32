// Ranks of one process that lend each other memory or pull from each other's, on one mapping of each area and region, as the thread
// sanitizer needs it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "rondo/memory.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/shm/sealed.hpp"
#include "transport/shm/self_test.hpp"

namespace rondo::test {

/// Who can pull from the others, and from pieces of which size on.
struct Pulling {
  std::vector<Rank> who;
  size_t pulled = SIZE_MAX;
};

class LentRanks {
 public:
  /// What is sent in pieces of `worth` bytes and more is referred to. No ranks: they cannot be made.
  LentRanks(
      uint32_t world, const shm::Sizes& sizes, size_t worth,
      const std::function<shm::Ring(Rank)>& ring_of = [](Rank) { return [] {}; },
      const Pulling& pulling = {}) {
    for (Rank rank = 0; rank < world; rank++) {
      auto mailbox = shm::Mailbox::make();
      auto sender = shm::Sender::make();
      if (!mailbox || !sender) return;
      shm::Addresses at{{}, mailbox->name};
      fill_random(at.key);
      auto area = shm::Area::make({42, rank, world}, sizes, at);
      if (!area) return;
      areas.push_back(std::make_shared<shm::Area>(std::move(*area)));
      mailboxes.push_back(std::move(mailbox->descriptor));
      lenders.push_back(std::make_shared<shm::Lender>(areas[rank], std::move(*sender), worth));
      borrowers.push_back(std::make_shared<shm::Borrower>(areas[rank], shm::OwnRegions::use));
    }
    for (const Rank rank : pulling.who)
      for (Rank peer = 0; peer < world; peer++)
        if (peer != rank) shm::try_to_pull(*areas[rank], *areas[peer]);
    for (Rank rank = 0; rank < world; rank++) {
      fabrics.push_back(std::make_unique<shm::ShmFabric>(
          areas[rank], nullptr, shm::Loans{lenders[rank], borrowers[rank], pulling.pulled}));
      for (Rank peer = 0; peer < world; peer++)
        if (peer != rank) fabrics[rank]->adopt(areas[peer], ring_of(peer));
    }
  }

  /// Every rank reads its letters.
  void deliver() {
    for (size_t rank = 0; rank < borrowers.size(); rank++) borrowers[rank]->receive(mailboxes[rank].get());
  }

  std::vector<std::shared_ptr<shm::Area>> areas;
  std::vector<Descriptor> mailboxes;
  std::vector<std::shared_ptr<shm::Lender>> lenders;
  std::vector<std::shared_ptr<shm::Borrower>> borrowers;
  std::vector<std::unique_ptr<shm::ShmFabric>> fabrics;
};

/// A thread that delivers while it lives.
class Postmen {
 public:
  explicit Postmen(std::shared_ptr<LentRanks> ranks)
      : thread_([this, ranks = std::move(ranks)] {
          for (; !over_; std::this_thread::sleep_for(std::chrono::milliseconds(1))) ranks->deliver();
        }) {}
  ~Postmen() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace rondo::test
