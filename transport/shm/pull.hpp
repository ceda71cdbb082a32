// Private memory of a peer, which the kernel copies from process to process (process_vm_readv(2)): once, where
// a block takes two copies.
//
//   writer                                       reader
//   has a witness, a random number in its
//   private memory; its area says where
//   refers to [a, a + n) in a slot  -----------> one system call reads [a, a + n), then the witness
//                                                right: this was the writer's memory, and still promised
//   withdraws the witness before it gives up
//   memory that may not have been read
//
// So nothing is taken from another process that has come by the number of the writer's, as in another PID
// namespace, nor from memory that the writer's caller has got back after a failure.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/link.hpp"

namespace rondo::shm {

/// Pieces of private memory that are pulled, in worlds of two. Measured on 2 cores, all-reduce in place: vectors
/// of 2 MiB, in pieces of 1 MiB, take as long either way, those of 4 to 16 MiB 0.8 of the time. Not where one
/// rank only takes: then both copy at once, which is quicker.
inline constexpr size_t worth_pulling = 1 << 20;

/// What a writer's area says of its witness.
struct Testimony {
  std::array<uint64_t, 2> number;
  uint64_t address;
  int32_t process;
};

class Witness {
 public:
  Witness() noexcept;
  Testimony testimony() const noexcept;
  /// Any thread; idempotent. Whatever is read from now on does not count.
  void withdraw() noexcept;

 private:
  std::array<std::atomic<uint64_t>, 2> number_;
};

/// Whether readers may be referred to a piece of this process's memory: it is the process that the testimony
/// is of, not a child of it, and the kernel reads this kind of memory, which may be a device's.
bool can_be_pulled(const Testimony& own, const View& piece) noexcept;

/// Reads the memory of the process that a testimony is of.
class Puller {
 public:
  explicit Puller(const Testimony& of) noexcept : of_(of) {}
  /// False: what is in `into` now does not count. errno says why; ESTALE: the witness is not there.
  bool pull(std::span<std::byte> into, uint64_t address) const noexcept;

 private:
  Testimony of_;
};

}  // namespace rondo::shm
