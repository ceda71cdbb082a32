// Regions lent to the other ranks of a communicator, which map them and read them where they are.
//
//   lender                                        borrower
//   lent[index] = number
//   letter: memfd, index, number  --the kernel--> checks and maps it
//   may refer to it from now on   <--acquire/release--  mapped = number
//   ...
//   freed: lent[index] = 0, a letter -----------> sees that it is not lent any more: unmaps it
//
// Numbers count from 1 and never come again, indices do. Letters to one borrower go out in the order of the
// numbers, so one word says what it has mapped. A letter that finds the queue full is sent again later, by
// whoever would like to refer to the region; until then it copies. One that tells of a region freed need not
// be: a full queue means that the borrower has a letter to read yet, and then it looks at all that it has mapped.
// A borrower that cannot map one, for want of descriptors or mappings, maps no more of that lender's.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "transport/link.hpp"
#include "transport/shm/area.hpp"
#include "transport/shm/post.hpp"
#include "transport/shm/region.hpp"

namespace rondo::shm {

/// A region that is lent.
struct Loan {
  uint16_t index;
  uint64_t number;
};

/// A letter of a lender to a borrower.
struct Offer {
  RandomName key;   // the borrower's
  uint64_t number;  // 0: look again at what is still lent
  uint64_t bytes;
  Rank from;
  uint32_t index;
};
static_assert(sizeof(Offer) == 40);

/// What is sent in pieces of fewer bytes is copied. That takes the writer's time; a reference makes it wait for
/// the reader, which costs nothing where ranks outnumber the cores and wait for each other anyway.
size_t worth_referring(uint32_t world) noexcept;

/// What this rank lends. Any thread.
class Lender final : public Region::Lending, public std::enable_shared_from_this<Lender> {
 public:
  /// `worth`: the smallest source that is to be referred to, in bytes.
  Lender(std::shared_ptr<Area> mine, Sender sender, size_t worth);
  size_t worth() const noexcept { return worth_; }
  /// Before all else, for every peer.
  void add(std::shared_ptr<const Area> peer);
  /// The loan of a region, which is made where there is none. Nothing: it cannot be.
  std::optional<Loan> lend(const std::shared_ptr<Region>& region) noexcept;
  /// Sends the letters that have not gone out yet.
  void send_letters() noexcept;
  void freed(const Region& region) noexcept override;

 private:
  struct Entry {
    const Region* region = nullptr;  // null: the index is free
    std::weak_ptr<Region> memory;
    uint64_t number = 0;
  };
  struct Peer {
    std::shared_ptr<const Area> area;
    uint64_t told = 0;  // the last number of which a letter went out
  };
  Entry* entry_of(const Region& region) noexcept;
  void send_letters_to(Peer& peer) noexcept;
  bool send(const Peer& peer, Offer offer, const std::shared_ptr<Region>& memory) const noexcept;

  const std::shared_ptr<Area> mine_;
  const Sender sender_;
  const size_t worth_;
  std::mutex mutex_;
  std::vector<Peer> peers_;
  std::vector<Entry> entries_{most_lent};
  uint64_t last_ = 0;
};

/// What of the caller's memory one link may refer to: what is lent and all its readers have mapped. Driver.
class LentSources {
 public:
  using Mapped = std::vector<const std::atomic<uint64_t>*>;  // of each reader
  /// No lender: nothing.
  LentSources(std::shared_ptr<Lender> lender, Mapped mapped)
      : lender_(std::move(lender)), mapped_(std::move(mapped)) {}

  struct Source {
    uint16_t index;
    uint64_t offset;
  };
  std::optional<Source> find(const View& source) noexcept;

 private:
  void look_up(const std::byte* address) noexcept;
  bool all_have_mapped() noexcept;

  const std::shared_ptr<Lender> lender_;
  const Mapped mapped_;
  // What is known of the surroundings of the last source.
  Regions::Place place_{nullptr, 0, 0, 0};
  std::optional<Loan> loan_;
  bool mapped_by_all_ = false;
};

/// Memory of a peer. It stays mapped as long as somebody holds this.
class Borrowed {
 public:
  Borrowed(const std::byte* base, size_t bytes) : base_(base), bytes_(bytes) {}
  explicit Borrowed(std::shared_ptr<Region> own)
      : own_(std::move(own)), base_(own_->base()), bytes_(own_->bytes()) {}
  Borrowed(const Borrowed&) = delete;
  ~Borrowed();
  const std::byte* base() const noexcept { return base_; }
  size_t bytes() const noexcept { return bytes_; }

 private:
  const std::shared_ptr<Region> own_;  // not mapped again
  const std::byte* const base_;
  const size_t bytes_;
};

/// Whether a borrower reads a region of its own process through the owner's mapping: for the sake of the
/// thread sanitizer, which is blind to two. The areas must have one mapping too, then.
enum class OwnRegions : bool { map_again, use };

/// What this rank's peers lend to it.
class Borrower {
 public:
  explicit Borrower(std::shared_ptr<Area> mine, OwnRegions own = OwnRegions::map_again);
  /// Before all else, for every peer.
  void add(std::shared_ptr<const Area> peer);
  /// Service thread. Reads the letters in the mailbox; true: there may be more.
  bool receive(int mailbox) noexcept;
  /// Driver. Null: nothing is mapped there.
  std::shared_ptr<const Borrowed> find(Rank peer, uint16_t index) noexcept;

 private:
  struct Entry {
    uint64_t number = 0;
    std::shared_ptr<const Borrowed> memory;
  };
  struct Peer {
    std::shared_ptr<const Area> area;
    bool refused = false;
    std::vector<Entry> entries;  // by index, as far as they have been used
  };
  void accept(const Offer& offer, Descriptor memory) noexcept;
  std::shared_ptr<const Borrowed> map(const Descriptor& memory, uint64_t bytes) const;
  void give_back() noexcept;

  const std::shared_ptr<Area> mine_;
  const OwnRegions own_;
  std::mutex mutex_;  // guards the entries, which the service thread changes and the driver reads
  std::vector<Peer> peers_;
};

}  // namespace rondo::shm
