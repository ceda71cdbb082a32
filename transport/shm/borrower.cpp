#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "base/log.hpp"
#include "transport/shm/lending.hpp"
#include "transport/shm/sealed.hpp"

namespace rondo::shm {
namespace {

constexpr int letters_at_once = 64;

// Takes the same time wherever they differ.
bool same(const RandomName& a, const RandomName& b) noexcept {
  std::byte differing{};
  for (size_t i = 0; i < a.size(); i++) differing |= a[i] ^ b[i];
  return differing == std::byte{};
}

}  // namespace

Borrowed::~Borrowed() {
  if (!own_) ::munmap(const_cast<std::byte*>(base_), bytes_);
}

Borrower::Borrower(std::shared_ptr<Area> mine, OwnRegions own)
    : mine_(std::move(mine)), own_(own), peers_(mine_->place().world) {}

void Borrower::add(std::shared_ptr<const Area> peer) {
  const Rank rank = peer->place().rank;
  peers_[rank].area = std::move(peer);
}

bool Borrower::receive(int mailbox) noexcept {
  int letters = 0;
  for (; letters < letters_at_once; letters++) {
    Offer offer;
    auto letter = take_letter(mailbox, std::as_writable_bytes(std::span(&offer, 1)));
    if (!letter) break;
    // What does not prove itself is a stranger's: closed and forgotten.
    if (letter->bytes == sizeof offer && same(offer.key, mine_->header().at.key))
      accept(offer, std::move(letter->memory));
  }
  if (letters > 0) give_back();
  return letters == letters_at_once;
}

void Borrower::accept(const Offer& offer, Descriptor memory) noexcept {
  if (offer.from >= peers_.size() || offer.number == 0 || offer.index >= most_lent) return;
  Peer& peer = peers_[offer.from];
  const auto index = uint16_t(offer.index);
  // A number that is not lent any more will not be referred to.
  if (!peer.area || peer.refused || peer.area->lent(index).load(std::memory_order_seq_cst) != offer.number)
    return;
  std::shared_ptr<const Borrowed> borrowed;
  try {
    if (peer.entries.size() <= index) {
      const std::lock_guard lock(mutex_);
      peer.entries.resize(size_t(index) + 1);
    }
    borrowed = map(memory, offer.bytes);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
  }
  if (!borrowed) {
    peer.refused = true;
    log::line(log::Level::info, int(mine_->place().rank),
              "cannot map more of the memory that rank {} allocated ({}); its data are copied instead",
              offer.from, memory ? std::strerror(errno) : "no descriptor came: is ulimit -n too low?");
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    std::swap(peer.entries[index].memory, borrowed);  // what was there is unmapped without the lock
    peer.entries[index].number = offer.number;
  }
  mine_->row(offer.from).mapped.store(offer.number, std::memory_order_release);
}

// Null: it cannot, and errno says why.
std::shared_ptr<const Borrowed> Borrower::map(const Descriptor& memory, uint64_t bytes) const {
  const auto [sealed, size] = look_at(memory.get());
  if (!sealed || size <= 0 || uint64_t(size) != bytes) {
    errno = EINVAL;
    return nullptr;
  }
  if (own_ == OwnRegions::use)
    if (auto region = Regions::of_process().same_as(memory.get()))
      return std::make_shared<const Borrowed>(std::move(region));
  void* base = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, memory.get(), 0);
  if (base == MAP_FAILED) return nullptr;
  return std::make_shared<const Borrowed>(static_cast<const std::byte*>(base), bytes);
}

// Lets go of all that is not lent any more.
void Borrower::give_back() noexcept {
  for (Peer& peer : peers_) {
    for (uint16_t index = 0; index < peer.entries.size(); index++) {
      Entry& entry = peer.entries[index];
      if (entry.number == 0 || peer.area->lent(index).load(std::memory_order_seq_cst) == entry.number)
        continue;
      Entry old;  // unmapped without the lock
      const std::lock_guard lock(mutex_);
      std::swap(old, entry);
    }
  }
}

std::shared_ptr<const Borrowed> Borrower::find(Rank peer, uint16_t index) noexcept {
  const std::lock_guard lock(mutex_);
  const auto& entries = peers_[peer].entries;
  return index < entries.size() ? entries[index].memory : nullptr;
}

}  // namespace rondo::shm
