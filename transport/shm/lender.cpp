#include <algorithm>

#include "base/cores.hpp"
#include "transport/shm/lending.hpp"

namespace rondo::shm {

size_t worth_referring(uint32_t world) noexcept {
  // Measured with 2, 4 and 8 ranks on 2 cores.
  return int64_t(world) <= usable_cores() ? 1 << 20 : 4 << 10;
}

Lender::Lender(std::shared_ptr<Area> mine, Sender sender, size_t worth)
    : mine_(std::move(mine)), sender_(std::move(sender)), worth_(worth) {}

void Lender::add(std::shared_ptr<const Area> peer) { peers_.push_back({std::move(peer)}); }

Lender::Entry* Lender::entry_of(const Region& region) noexcept {
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.region == &region; });
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<Loan> Lender::lend(const std::shared_ptr<Region>& region) noexcept {
  const std::lock_guard lock(mutex_);
  Entry* entry = entry_of(*region);
  if (entry == nullptr) {
    entry = std::ranges::find(entries_, nullptr, &Entry::region).base();
    if (entry == entries_.data() + entries_.size() || !region->add(weak_from_this())) return std::nullopt;
    *entry = {region.get(), region, ++last_};
    mine_->lent(uint16_t(entry - entries_.data())).store(entry->number, std::memory_order_seq_cst);
    for (Peer& peer : peers_) send_letters_to(peer);
  }
  return Loan{uint16_t(entry - entries_.data()), entry->number};
}

void Lender::send_letters() noexcept {
  const std::lock_guard lock(mutex_);
  for (Peer& peer : peers_)
    if (peer.told < last_) send_letters_to(peer);
}

// In the order of the numbers; those of regions that have been freed meanwhile are left out.
void Lender::send_letters_to(Peer& peer) noexcept {
  for (;;) {
    const Entry* next = nullptr;
    for (const Entry& entry : entries_)
      if (entry.number > peer.told && (next == nullptr || entry.number < next->number)) next = &entry;
    if (next == nullptr) return;
    const Offer offer{peer.area->header().at.key, next->number, 0, mine_->place().rank,
                      uint32_t(next - entries_.data())};
    if (!send(peer, offer, next->memory.lock())) return;
    peer.told = next->number;
  }
}

bool Lender::send(const Peer& peer, Offer offer, const std::shared_ptr<Region>& memory) const noexcept {
  if (memory) offer.bytes = memory->bytes();
  return sender_.send(peer.area->header().at.post, std::as_bytes(std::span(&offer, 1)),
                      memory ? memory->descriptor() : -1);
}

void Lender::freed(const Region& region) noexcept {
  const std::lock_guard lock(mutex_);
  Entry* const entry = entry_of(region);
  if (entry == nullptr) return;
  const uint64_t number = entry->number;
  mine_->lent(uint16_t(entry - entries_.data())).store(0, std::memory_order_seq_cst);
  *entry = {};
  for (const Peer& peer : peers_)
    if (peer.told >= number) send(peer, {peer.area->header().at.key, 0, 0, mine_->place().rank, 0}, nullptr);
}

std::optional<LentSources::Source> LentSources::find(const View& source) noexcept {
  if (lender_ == nullptr || source.bytes < lender_->worth()) return std::nullopt;
  const auto at = reinterpret_cast<uintptr_t>(source.data);
  const bool known =
      at >= place_.from && at < place_.to && place_.generation == Regions::of_process().generation();
  if (!known) look_up(source.data);
  if (!loan_ || at + source.bytes > place_.to || !(mapped_by_all_ || all_have_mapped())) return std::nullopt;
  return Source{loan_->index, at - place_.from};
}

void LentSources::look_up(const std::byte* address) noexcept {
  place_ = Regions::of_process().find(address);
  // Not to be kept alive from here.
  const auto region = std::exchange(place_.region, nullptr);
  loan_ = region ? lender_->lend(region) : std::nullopt;
  mapped_by_all_ = false;
}

bool LentSources::all_have_mapped() noexcept {
  mapped_by_all_ = std::ranges::all_of(
      mapped_, [&](const auto* mapped) { return mapped->load(std::memory_order_acquire) >= loan_->number; });
  if (!mapped_by_all_) lender_->send_letters();
  return mapped_by_all_;
}

}  // namespace rondo::shm
