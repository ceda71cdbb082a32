// Streams of bytes through shared memory: the writer fills slots of its own area, its readers (one, or all
// ranks of the machine) read them where they are.
//
// From memory that is lent (lending.hpp) they read without a copy: the slot says only where. Private memory of
// the writer they may pull (pull.hpp), from where it is into where they want it.
//
//   writer  fills a slot       --release-->  slot.published    --acquire-->  reader looks
//   reader  has done with it   --release-->  reading.released  --acquire-->  writer may fill it again
#pragma once
#include <functional>
#include <vector>

#include "transport/link.hpp"
#include "transport/shm/lending.hpp"

namespace rondo::shm {

/// Rings a peer's doorbell.
using Ring = std::function<void()>;

LinkCaps caps_of(const Sizes& sizes, size_t readers) noexcept;

class ShmTx final : public Tx {
 public:
  struct Reader {
    const Reading* reading;  // in the reader's area
    const Header* header;    // of the reader's area
    Ring ring;
    const std::atomic<uint64_t>* mapped = nullptr;  // in the reader's area, where there is a lender
    bool pulls = false;                             // it can read this rank's private memory
  };
  /// Writes the slots of `row`, the first `used` of which have been used and released before. Readers that all
  /// can pull are left to pull what is sent in pieces of `pulled` bytes and more.
  ShmTx(const Area& mine, Rank row, std::vector<Reader> readers, uint64_t used = 0,
        std::shared_ptr<Lender> lender = nullptr, size_t pulled = SIZE_MAX);
  const LinkCaps& caps() const noexcept override { return caps_; }
  LinkState poll() noexcept override;
  int descriptor() const noexcept override { return -1; }
  void close() noexcept override;
  std::span<std::byte> acquire(size_t bytes) noexcept override;
  void commit(size_t bytes) noexcept override;
  size_t send(View source, Traffic traffic = Traffic::both_ways) noexcept override;
  // What is published, for an operation that ends sooner would leave the rest where nobody sees it; and of
  // what is only referred to, what all readers have released.
  uint64_t completed() const noexcept override { return referring_ > 0 ? oldest().position : published_; }
  /// Bytes that the readers have been referred to, instead of copying them.
  uint64_t bytes_referred() const noexcept { return bytes_referred_; }

 private:
  // A slot that refers to the caller's memory.
  struct Reference {
    uint64_t slot, position;  // where in the stream the memory's bytes begin
  };
  bool all_released(uint64_t slot) noexcept;
  void settle() noexcept;
  std::optional<LentSources::Source> referable(const View& source, Traffic traffic) noexcept;
  size_t copy(const View& source) noexcept;
  size_t refer(const View& source, const LentSources::Source& lent) noexcept;
  const Reference& oldest() const noexcept {
    return references_[(next_reference_ - referring_) % references_.size()];
  }
  bool has_slot() noexcept;
  std::span<std::byte> room(size_t bytes) noexcept;
  bool in_slot(const std::byte* at) const noexcept {
    return at >= slot_->data && at < slot_->data + small_bytes;
  }
  bool begun() const noexcept { return small_ + large_ > 0; }
  bool closed() const noexcept;
  void publish() noexcept;

  const Area& mine_;
  const Rank row_;
  LinkCaps caps_;
  std::vector<Reader> readers_;
  size_t slowest_ = 0;   // the reader that was last seen to hold the writer back
  uint64_t next_;        // the slot being filled; all before it are published
  uint64_t given_back_;  // slots that every reader had released when last looked at
  const std::span<Slot> slots_;
  Slot* slot_;                      // next_'s
  std::vector<uint64_t> users_;     // of each block: 1 + the slot that used it last, or 0
  uint32_t block_ = 0;              // for the next large piece
  uint32_t small_ = 0, large_ = 0;  // bytes in its pieces
  uint16_t region_ = 0;             // what it refers to, as in Slot
  bool acquired_small_ = false;     // acquire gave memory in the small piece
  uint64_t published_ = 0;          // bytes
  bool own_barrier_;                // this rank makes its barriers itself

  LentSources lent_;
  size_t pulled_;                      // private memory is referred to in pieces of so many bytes and more
  std::vector<Reference> references_;  // a ring: those not released yet are the last referring_
  size_t next_reference_ = 0, referring_ = 0;
  uint64_t bytes_referred_ = 0;
};

class ShmRx final : public Rx {
 public:
  struct Writer {
    const Area* area;
    Rank row;  // of the slots to read
    Ring ring;
    std::shared_ptr<Borrower> borrower = nullptr;
  };
  /// Pulls where this rank has said that it can.
  ShmRx(const Area& mine, Reading& reading, Writer from, uint32_t readers = 1, uint64_t used = 0);
  const LinkCaps& caps() const noexcept override { return caps_; }
  LinkState poll() noexcept override;
  int descriptor() const noexcept override { return -1; }
  void close() noexcept override;
  View peek(size_t max, size_t quantum) noexcept override;
  void release(size_t bytes) noexcept override;
  size_t receive(std::span<std::byte> target) noexcept override;

 private:
  bool look() noexcept;
  bool open_block() noexcept;
  bool borrow() noexcept;
  size_t fetch(size_t wanted, size_t quantum) noexcept;
  bool pull(std::span<std::byte> into) noexcept;
  void give_up() noexcept;

  const Rank rank_;
  Reading& mine_;
  Writer from_;
  LinkCaps caps_;
  uint64_t next_;  // the slot being read
  const std::span<Slot> slots_;
  Slot* slot_;          // next_'s
  uint32_t block_ = 0;  // of the next large piece
  bool own_barrier_;    // this rank makes its barriers itself
  // Of that slot, once it is seen to be published: what is left of its pieces, and where.
  const std::byte *small_ = nullptr, *large_ = nullptr;
  uint32_t small_left_ = 0, large_left_ = 0;
  std::shared_ptr<const Borrowed> borrowed_;  // what the large piece lies in, if not in a block
  bool broken_ = false;                       // it referred to memory that is not there

  // Of a large piece in the writer's private memory: where what is left of it lies there, 0 for other pieces;
  // and how much of that is in the scratch, from large_ on.
  uint64_t remote_ = 0;
  size_t fetched_ = 0;
  std::optional<Puller> puller_;
  std::unique_ptr<std::byte[]> scratch_;  // made when first needed
};

/// The owner of `area` sleeps or not, for its peers to see. After `true` it must look at its links once more
/// before it sleeps: either it sees what a peer has published, or the peer sees it asleep and rings. Both
/// sides write, then read the other's word, with a barrier between the two: where the kernel allows, the
/// sleeper makes that of its peers too.
void set_asleep(Area& area, bool asleep) noexcept;

}  // namespace rondo::shm
