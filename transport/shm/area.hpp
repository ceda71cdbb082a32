// One rank's staging area in shared memory: it alone writes it, all ranks of the machine read it. What a
// reader has to tell the writer (how far it has read) lies in the reader's own area.
//
//   header    who this is; asleep?                      written by the owner, as everything here
//   row p     what the owner has read of p's slots; what it has closed
//   lent      which regions of its own memory the owner lends to its peers
//   slots p   p another rank: what the owner sends to p
//             p the owner:    what it publishes to all ranks
//   blocks p  for the large pieces of slots p
//
// A slot begins with the word that publishes it, beside the first bytes of its data: a small message is one
// cache line, which the reader polls and the data come with it. A large piece, to slot_bytes, lies in a block;
// the slots that have one use the blocks in turn.
//
//   |published|small|large| small piece, to 48 bytes |       | large piece ...
//   |<----------------- one cache line ------------->|
//
// A slot may refer to memory that the owner lends (lending.hpp) in place of a large piece: `region` says to
// which, the last 8 bytes of the small piece's room say where in it. Or to the owner's private memory (pull.hpp),
// which has a `region` of its own: then they are the address.
//
// The memory is an anonymous memfd: nothing has a name, nothing is left behind when the last process has
// gone. It is sealed (sealed.hpp). Pages take memory when they are first used.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/descriptor.hpp"
#include "rondo/result.hpp"
#include "transport/shm/pull.hpp"
#include "transport/shm/socket_name.hpp"

namespace rondo::shm {

struct Sizes {
  uint32_t slot_bytes = 64 << 10;  // of a block, a multiple of 64
  uint16_t slots = 8, blocks = slots;
  /// An area of about 4 MiB at most, up to 64 ranks.
  static Sizes for_world(uint32_t world) noexcept;
};

/// Where the owner is rung (bell.hpp) and gets letters (post.hpp); zeros: nowhere.
using BellName = RandomName;
using PostName = RandomName;
struct Addresses {
  BellName bell{};
  PostName post{};
  RandomName key{};  // proves in a letter to the owner that its writer has been given this area
};

/// Regions that a rank lends at a time: so many mappings for each of its peers, at most.
inline constexpr uint16_t most_lent = 256;
/// The index of what is none of them: the private memory of the rank.
inline constexpr uint16_t private_memory = UINT16_MAX - 1;

/// The owner writes, its peers read.
struct Header {
  uint64_t magic, epoch;
  uint32_t rank, world, slot_bytes, slots, blocks;
  Addresses at;
  uint32_t
      barriers;  // 1: the owner makes its peers' barriers when it goes to sleep, and takes part in theirs
  Testimony testimony;                       // by which its private memory is known
  alignas(64) std::atomic<uint32_t> asleep;  // the owner sleeps or is about to
};

/// How far the owner has read a stream of slots of one peer. What is looked at all the time and seldom written
/// has a cache line of its own.
struct Reading {
  alignas(64) std::atomic<uint64_t> released;  // slots that it has done with
  alignas(64) std::atomic<uint32_t> closed;    // it reads no more
};
struct Row {
  Reading link;                              // of what the peer sends to the owner
  Reading of_publication;                    // of what the peer publishes
  alignas(64) std::atomic<uint32_t> closed;  // the owner writes no more into the slots of this row
  std::atomic<uint32_t> pulls;               // the owner can read the peer's private memory
  std::atomic<uint64_t> mapped;              // what the peer lends is mapped here, up to this number
};

inline constexpr size_t small_bytes = 48, small_with_region = small_bytes - sizeof(uint64_t);
struct alignas(64) Slot {
  std::atomic<uint64_t> published;  // the slot's number in the stream, from 1, once it may be read
  uint16_t small;                   // length of the small piece
  uint16_t region;                  // 0: none; else 1 + the index of what the large piece lies in
  uint32_t large;                   // length of the large piece
  std::byte data[small_bytes];      // the small piece
  std::byte* offset_data() noexcept { return data + small_with_region; }
};
static_assert(sizeof(Slot) == 64 && sizeof(Row) == 320 && sizeof(Header) == 192);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

/// A mapping of an area: writable for its owner, read-only for its peers.
class Area {
 public:
  struct Place {
    uint64_t epoch;
    Rank rank;
    uint32_t world;
  };
  /// Makes the area of `place.rank`. Errors: system.
  static Result<Area> make(const Place& place, const Sizes& sizes, const Addresses& at = {});
  /// Maps the area behind `memory` for reading. Errors: system, or mismatch when it is not the area of that
  /// rank, of these sizes and sealed.
  static Result<Area> open(Descriptor memory, const Place& place, const Sizes& sizes);
  /// How large it is in a world.
  static size_t bytes_for(uint32_t world) noexcept;

  Area(Area&& other) noexcept;
  Area& operator=(Area&&) = delete;
  ~Area();

  int descriptor() const noexcept { return memory_.get(); }
  /// No more peers will be given it.
  void close_descriptor() noexcept { memory_ = Descriptor(); }
  const Place& place() const noexcept { return place_; }
  const Sizes& sizes() const noexcept { return sizes_; }
  Header& header() const noexcept { return *reinterpret_cast<Header*>(base_); }
  Row& row(Rank peer) const noexcept { return *reinterpret_cast<Row*>(base_ + row_offset(peer)); }
  /// The owner. Any thread: nothing more is to be pulled from its private memory.
  void withdraw() const noexcept { witness_->withdraw(); }
  /// The number of the region that is lent under an index; 0: none.
  std::atomic<uint64_t>& lent(uint16_t index) const noexcept {
    return reinterpret_cast<std::atomic<uint64_t>*>(base_ + row_offset(place_.world))[index];
  }
  std::span<Slot> slots(Rank row) const noexcept {
    return {reinterpret_cast<Slot*>(base_ + slots_offset_) + size_t(row) * sizes_.slots, sizes_.slots};
  }
  std::byte* block(Rank row, uint32_t index) const noexcept {
    return base_ + blocks_offset_ + (size_t(row) * sizes_.blocks + index) * sizes_.slot_bytes;
  }

 private:
  Area(Descriptor memory, const Place& place, const Sizes& sizes);
  Result<void> map(int protection);
  bool is_as_expected() const noexcept;
  static size_t row_offset(Rank peer) noexcept { return sizeof(Header) + size_t(peer) * sizeof(Row); }

  Descriptor memory_;
  Place place_;
  Sizes sizes_;
  size_t slots_offset_, blocks_offset_, bytes_;
  std::unique_ptr<Witness> witness_;  // the owner's
  std::byte* base_ = nullptr;
};

}  // namespace rondo::shm
