// The memory of rondo::allocate: sealed anonymous memfds, and the process's list of them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "base/descriptor.hpp"
#include "rondo/result.hpp"

namespace rondo::shm {

/// One piece of it. Any thread.
class Region {
 public:
  /// Whoever lends it to other processes.
  class Lending {
   public:
    virtual ~Lending() = default;
    /// Any thread: its owner has given it up.
    virtual void freed(const Region& region) noexcept = 0;
  };
  /// Errors: system.
  static Result<std::shared_ptr<Region>> make(size_t bytes);
  ~Region();
  Region(const Region&) = delete;

  std::byte* base() const noexcept { return base_; }
  size_t bytes() const noexcept { return bytes_; }  // whole pages
  int descriptor() const noexcept { return memory_.get(); }

  /// False: it is freed already.
  bool add(std::weak_ptr<Lending> lending);
  void tell_freed() noexcept;

 private:
  Region(Descriptor memory, std::byte* base, size_t bytes)
      : memory_(std::move(memory)), base_(base), bytes_(bytes) {}

  const Descriptor memory_;
  std::byte* const base_;
  const size_t bytes_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Lending>> lendings_;
  bool freed_ = false;
};

/// Where the process's regions lie. Any thread.
class Regions {
 public:
  /// The only one, for every communicator may be given any of the memory. Never destroyed: nor may memory
  /// be that is.
  static Regions& of_process();

  /// Errors: system.
  Result<std::byte*> make(size_t bytes);
  void free(const std::byte* base) noexcept;

  /// What lies around an address: a region, or a gap, and that all of [from, to) is of it as long as the
  /// generation is this one.
  struct Place {
    std::shared_ptr<Region> region;  // null: none
    uintptr_t from, to;
    uint64_t generation;
  };
  Place find(const void* address) const noexcept;
  uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<Region>> regions_;  // by address
  std::atomic<uint64_t> generation_{1};           // changed under the lock whenever regions_ is
};

}  // namespace rondo::shm
