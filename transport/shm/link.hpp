// A link through shared memory: the sender fills slots of its own area, the receiver reads them where they
// are.
//
//   writer  fills slot, length   --release-->  committed   --acquire-->  reader looks
//   reader  has done with it     --release-->  released    --acquire-->  writer may fill it again
#pragma once
#include <functional>

#include "transport/link.hpp"
#include "transport/shm/area.hpp"

namespace rondo::shm {

/// One direction's two ends see the same two areas: `mine` is this rank's, writable, `theirs` the peer's.
struct Place {
  Area* mine;
  const Area* theirs;
  Rank self, peer;
};

/// Rings the peer's doorbell.
using Ring = std::function<void()>;

class ShmTx final : public Tx {
 public:
  ShmTx(const Place& place, Ring ring);
  const LinkCaps& caps() const noexcept override { return caps_; }
  LinkState poll() noexcept override;
  int descriptor() const noexcept override { return -1; }
  void close() noexcept override;
  std::span<std::byte> acquire(size_t bytes) noexcept override;
  void commit(size_t bytes) noexcept override;
  size_t send(View source) noexcept override;
  uint64_t completed() const noexcept override { return accepted_; }

 private:
  size_t room() noexcept;
  void publish() noexcept;

  Place place_;
  LinkCaps caps_;
  Ring ring_;
  Block& block_;
  const std::atomic<uint64_t>& released_;
  uint64_t next_ = 0;        // the slot being filled; all before it are published
  uint32_t filled_ = 0;      // of that slot
  uint32_t preamble_ = 0;    // small first pieces in it, beside which a full segment fits
  uint64_t given_back_ = 0;  // slots that the reader had released when last looked at
  uint64_t accepted_ = 0;
};

class ShmRx final : public Rx {
 public:
  ShmRx(const Place& place, Ring ring);
  const LinkCaps& caps() const noexcept override { return caps_; }
  LinkState poll() noexcept override;
  int descriptor() const noexcept override { return -1; }
  void close() noexcept override;
  View peek(size_t max, size_t quantum) noexcept override;
  void release(size_t bytes) noexcept override;
  size_t receive(std::span<std::byte> target) noexcept override;

 private:
  Place place_;
  LinkCaps caps_;
  Ring ring_;
  const Block& theirs_;
  std::atomic<uint64_t>& released_;
  uint64_t next_ = 0;   // the slot being read
  uint32_t used_ = 0;   // of that slot
  uint64_t ready_ = 0;  // slots below are published, as last seen
};

/// The owner of `area` sleeps or not, for its peers to see. After `true` it must look at its links once more
/// before it sleeps: either it sees what a peer has published, or the peer sees it asleep and rings. Both
/// sides write, then read the other's word, so all four are sequentially consistent.
void set_asleep(Area& area, bool asleep) noexcept;

}  // namespace rondo::shm
