// One rank's staging area in shared memory: it alone writes it, all ranks of the machine read it. What a
// reader has to tell the writer (how far it has read) lies in the reader's own area.
//
//   header   asleep?  epoch, rank                                  written by the owner
//   block p  committed -> peer p;  lengths of its slots            written by the owner: its Tx to p
//            released  <- peer p                                   written by the owner: its Rx from p
//   slots p  what the owner sends to p                             written by the owner
//
// The memory is an anonymous memfd: nothing has a name, nothing is left behind when the last process has
// gone. Pages take memory when they are first used.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/descriptor.hpp"
#include "rondo/result.hpp"

namespace rondo::shm {

struct Sizes {
  uint32_t slot_bytes = 64 << 10;  // a multiple of 64
  uint16_t slots = 8;
};

inline constexpr size_t most_slots = 64;
// What a slot holds beyond slot_bytes: a message header before a full segment, so that W segments need W
// slots.
inline constexpr size_t preamble_bytes = 64;

/// All shared atomics; each comment says which side writes it, the other side only reads.
struct Header {
  uint64_t magic, epoch;
  uint32_t rank, world;
  std::atomic<uint32_t> asleep;  // the owner sleeps or is about to
};
struct Block {
  alignas(64) std::atomic<uint64_t> committed;  // slots given to the peer
  std::atomic<uint32_t> ended;                  // the owner has closed a link with the peer
  uint32_t lengths[most_slots];
  alignas(64) std::atomic<uint64_t> released;  // slots of the peer that the owner has done with
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

/// A mapping of an area: writable for its owner, read-only for its peers.
class Area {
 public:
  /// Makes the area of `rank`. Errors: system.
  static Result<Area> make(uint64_t epoch, Rank rank, uint32_t world, const Sizes& sizes);
  /// Maps the area behind `memory` for reading. Errors: system, or mismatch when it is not the area of
  /// `rank`.
  static Result<Area> open(Descriptor memory, uint64_t epoch, Rank rank, uint32_t world, const Sizes& sizes);

  Area(Area&& other) noexcept;
  Area& operator=(Area&&) = delete;
  ~Area();

  int descriptor() const noexcept { return memory_.get(); }
  const Sizes& sizes() const noexcept { return sizes_; }
  Header& header() const noexcept { return *reinterpret_cast<Header*>(base_); }
  Block& block(Rank peer) const noexcept { return *reinterpret_cast<Block*>(base_ + block_offset(peer)); }
  std::byte* slot(Rank peer, uint64_t slot) const noexcept {
    return base_ + slots_offset_ + (size_t(peer) * sizes_.slots + slot % sizes_.slots) * stride();
  }

 private:
  Area(Descriptor memory, uint32_t world, const Sizes& sizes);
  Result<void> map(int protection);
  size_t stride() const noexcept { return sizes_.slot_bytes + preamble_bytes; }
  static size_t block_offset(Rank peer) noexcept { return 64 + size_t(peer) * sizeof(Block); }

  Descriptor memory_;
  Sizes sizes_;
  size_t slots_offset_, bytes_;
  std::byte* base_ = nullptr;
};
static_assert(sizeof(Header) <= 64 && sizeof(Block) % 64 == 0);

}  // namespace rondo::shm
