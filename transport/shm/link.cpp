#include "transport/shm/link.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/log.hpp"
#include "transport/shm/barrier.hpp"

namespace rondo::shm {
namespace {

constexpr auto in_order = std::memory_order_seq_cst;
// Mutants for the thread sanitizer (tests/loopback/mutants.cpp): each has one of these too weak.
#ifndef RONDO_MUTANT
#define RONDO_MUTANT 0
#endif
constexpr auto publishing = RONDO_MUTANT == 1 ? std::memory_order_relaxed : std::memory_order_release;
// Reports the sources of a send as the caller's again before they are: tests/loopback/lending.cpp sees that.
constexpr bool early = RONDO_MUTANT == 3;
constexpr auto releasing = RONDO_MUTANT == 2 ? std::memory_order_relaxed : std::memory_order_release;
// Elements have at most 16 bytes: a send that is cut at a multiple of it never tears one between two slots.
constexpr size_t grain = 16;
// Less room than this, and a fresh slot is begun.
constexpr size_t smallest_piece = 256;
// What is committed in smaller pieces waits for the next, or for poll.
constexpr size_t worth_publishing = 1024;
// By one reference.
constexpr size_t most_referred = 1 << 30;
// What is pulled to be looked at should still be in the second-level cache then.
constexpr size_t scratch_bytes = 256 << 10;

// Before wake_if_asleep. An order that is no constant would always be the strongest.
template <std::memory_order order>
void store(std::atomic<uint64_t>& word, uint64_t value, bool own_barrier) noexcept {
  if (own_barrier)
    word.store(value, in_order);
  else
    word.store(value, order);
  std::atomic_signal_fence(in_order);  // for the compiler: the look comes after the store
}

void wake_if_asleep(const Header& header, const Ring& ring) noexcept {
  if (header.asleep.load(in_order) != 0) ring();
}

// Around a ring. A division takes as long as the rest of what a small message costs here.
Slot* after(Slot* slot, std::span<Slot> slots) {
  return ++slot == slots.data() + slots.size() ? slots.data() : slot;
}
uint32_t after(uint32_t block, size_t blocks) { return block + 1 == blocks ? 0 : block + 1; }

LentSources::Mapped mapped_words(const std::vector<ShmTx::Reader>& readers) {
  LentSources::Mapped words;
  for (const ShmTx::Reader& reader : readers) words.push_back(reader.mapped);
  return words;
}

}  // namespace

LinkCaps caps_of(const Sizes& sizes, size_t readers) noexcept {
  return {.slot_bytes = sizes.slot_bytes,
          .slots = std::min(sizes.slots, sizes.blocks),
          .readers = uint32_t(readers)};
}

void set_asleep(Area& area, bool asleep) noexcept {
  area.header().asleep.store(asleep, in_order);
  if (asleep && area.header().barriers != 0) barrier_everywhere();
}

ShmTx::ShmTx(const Area& mine, Rank row, std::vector<Reader> readers, uint64_t used,
             std::shared_ptr<Lender> lender, size_t pulled)
    : mine_(mine),
      row_(row),
      caps_(caps_of(mine.sizes(), readers.size())),
      readers_(std::move(readers)),
      next_(used),
      given_back_(used),
      slots_(mine.slots(row)),
      slot_(&slots_[used % slots_.size()]),
      users_(mine.sizes().blocks),
      own_barrier_(
          mine.header().barriers == 0 ||
          std::ranges::any_of(readers_, [](const Reader& reader) { return reader.header->barriers == 0; })),
      lent_(std::move(lender), mapped_words(readers_)),
      pulled_(std::ranges::all_of(readers_, &Reader::pulls) ? pulled : SIZE_MAX),
      references_(mine.sizes().slots) {}

// A rank that has taken all that was published may leave while others still read.
bool ShmTx::closed() const noexcept {
  if (mine_.row(row_).closed.load(in_order) != 0) return true;
  const bool publication = row_ == mine_.place().rank;
  return std::ranges::any_of(readers_, [&](const Reader& reader) {
    if (reader.reading->closed.load(in_order) == 0) return false;
    return !publication || reader.reading->released.load(in_order) < next_;
  });
}

LinkState ShmTx::poll() noexcept {
  if (begun()) publish();
  const bool over = closed();
  settle();  // after that look: a reader releases what it has taken before it closes
  return over ? LinkState::closed : LinkState::open;
}

void ShmTx::close() noexcept {
  mine_.row(row_).closed.store(1, in_order);
  for (const Reader& reader : readers_) reader.ring();
}

// Whether slot next_ is the writer's, and a block for it.
bool ShmTx::has_slot() noexcept {
  const uint64_t slots = slots_.size(), user = users_[block_];
  return (next_ < slots || all_released(next_ - slots)) && (user == 0 || all_released(user - 1));
}

// The readers are asked only when that is not known from before, beginning with the one that held the writer
// back the last time.
bool ShmTx::all_released(uint64_t slot) noexcept {
  if (slot < given_back_) return true;
  uint64_t least = next_;
  for (size_t i = 0; i < readers_.size(); i++) {
    const size_t at = (slowest_ + i) % readers_.size();
    const uint64_t released = readers_[at].reading->released.load(in_order);  // pairs with ShmRx::release
    least = std::min(least, released);
    if (released > slot) continue;
    slowest_ = at;
    return false;
  }
  given_back_ = least;
  return true;
}

// Takes back what all readers have released.
void ShmTx::settle() noexcept {
  while (referring_ > 0 && (early || all_released(oldest().slot))) referring_--;
}

// Where the next `bytes` go, or as many as the slot has room for.
std::span<std::byte> ShmTx::room(size_t bytes) noexcept {
  if (large_ == 0 && bytes <= small_bytes - small_) return {slot_->data + small_, bytes};
  return {mine_.block(row_, block_) + large_, std::min<size_t>(bytes, caps_.slot_bytes - large_)};
}

void ShmTx::publish() noexcept {
  published_ += small_ + large_;
  if (large_ > 0 && region_ == 0) {
    users_[block_] = next_ + 1;
    block_ = after(block_, users_.size());
  }
  slot_->small = uint16_t(std::exchange(small_, 0));
  slot_->region = std::exchange(region_, 0);
  slot_->large = std::exchange(large_, 0);
  store<publishing>(slot_->published, ++next_, own_barrier_);  // pairs with ShmRx::look
  slot_ = after(slot_, slots_);
  for (const Reader& reader : readers_) wake_if_asleep(*reader.header, reader.ring);
}

std::span<std::byte> ShmTx::acquire(size_t bytes) noexcept {
  if (begun() && room(bytes).size() < std::min(bytes, smallest_piece)) publish();
  if (!has_slot()) return {};
  const auto space = room(bytes);
  acquired_small_ = in_slot(space.data());
  return space;
}

void ShmTx::commit(size_t bytes) noexcept {
  (acquired_small_ ? small_ : large_) += uint32_t(bytes);
  assert(small_ <= small_bytes && large_ <= caps_.slot_bytes);
  if (large_ >= worth_publishing) publish();
}

size_t ShmTx::send(View source, Traffic traffic) noexcept {
  const auto there = referable(source, traffic);
  size_t sent = 0;
  while (sent < source.bytes && !closed() && has_slot()) {
    const View rest{source.data + sent, source.bytes - sent};
    sent += there ? refer(rest, {there->index, there->offset + sent}) : copy(rest);
  }
  return sent;
}

// Where the readers can get it themselves.
std::optional<LentSources::Source> ShmTx::referable(const View& source, Traffic traffic) noexcept {
  if (const auto lent = lent_.find(source)) return lent;
  if (source.bytes < pulled_ || traffic == Traffic::one_way || !has_slot() ||
      !can_be_pulled(mine_.header().testimony, source))
    return std::nullopt;
  return LentSources::Source{private_memory, reinterpret_cast<uintptr_t>(source.data)};
}

// As much as the slot has room for; publishes it when there is more.
size_t ShmTx::copy(const View& source) noexcept {
  const auto space = room(source.bytes);
  const size_t n = source.bytes <= space.size() ? source.bytes : space.size() / grain * grain;
  std::memcpy(space.data(), source.data, n);
  (in_slot(space.data()) ? small_ : large_) += uint32_t(n);
  if (n < source.bytes) publish();
  return n;
}

// Up to most_referred; none where the slot has no room for a reference and was published as it is.
size_t ShmTx::refer(const View& source, const LentSources::Source& lent) noexcept {
  if (large_ > 0 || small_ > small_with_region) {
    publish();
    return 0;
  }
  settle();  // as the slot is free, so is one of the references
  const auto n = uint32_t(std::min(source.bytes, most_referred));
  references_[next_reference_++ % references_.size()] = {next_, published_ + small_};
  referring_++;
  bytes_referred_ += n;
  std::memcpy(slot_->offset_data(), &lent.offset, sizeof lent.offset);
  region_ = uint16_t(lent.index + 1);
  large_ = n;
  publish();
  return n;
}

ShmRx::ShmRx(const Area& mine, Reading& reading, Writer from, uint32_t readers, uint64_t used)
    : rank_(mine.place().rank),
      mine_(reading),
      from_(std::move(from)),
      caps_(caps_of(from_.area->sizes(), readers)),
      next_(used),
      slots_(from_.area->slots(from_.row)),
      slot_(&slots_[used % slots_.size()]),
      own_barrier_(mine.header().barriers == 0 || from_.area->header().barriers == 0) {
  if (mine.row(from_.area->place().rank).pulls.load(in_order) == 0) return;
  puller_.emplace(from_.area->header().testimony);
}

LinkState ShmRx::poll() noexcept {
  // Before the look at what is there: that was published earlier.
  const bool over = mine_.closed.load(in_order) != 0 || from_.area->row(from_.row).closed.load(in_order) != 0;
  if (broken_) return LinkState::failed;
  return over && !look() ? LinkState::closed : LinkState::open;
}

void ShmRx::close() noexcept {
  mine_.closed.store(1, in_order);
  from_.ring();
}

// Whether there is something to read in slot next_.
bool ShmRx::look() noexcept {
  if (small_left_ + large_left_ > 0) return true;
  if (slot_->published.load(in_order) != next_ + 1 || broken_) return false;  // pairs with ShmTx::publish
  small_ = slot_->data;
  small_left_ = std::min<uint32_t>(slot_->small, small_bytes);
  large_left_ = slot_->large;
  if (large_left_ == 0 || (slot_->region != 0 ? borrow() : open_block())) return true;
  small_left_ = large_left_ = 0;
  broken_ = true;
  return false;
}

// The large piece lies in the next block.
bool ShmRx::open_block() noexcept {
  large_ = from_.area->block(from_.row, block_);
  block_ = after(block_, from_.area->sizes().blocks);
  return large_left_ <= caps_.slot_bytes;
}

// The slot refers to a region of the writer's, or its private memory.
bool ShmRx::borrow() noexcept {
  uint64_t offset;
  std::memcpy(&offset, slot_->offset_data(), sizeof offset);
  if (slot_->region == private_memory + 1) {
    remote_ = offset;
    return puller_ && offset != 0;
  }
  if (!from_.borrower) return false;
  borrowed_ = from_.borrower->find(from_.area->place().rank, uint16_t(slot_->region - 1));
  if (!borrowed_ || offset > borrowed_->bytes() || large_left_ > borrowed_->bytes() - offset) return false;
  large_ = borrowed_->base() + offset;
  return true;
}

View ShmRx::peek(size_t max, size_t quantum) noexcept {
  if (!look()) return {};
  if (small_left_ > 0) return {small_, std::min<size_t>(small_left_, max) / quantum * quantum};
  size_t there = std::min<size_t>(large_left_, max);
  if (remote_ != 0) there = std::min(there, fetch(there, quantum));
  return {large_, there / quantum * quantum};
}

// Pulls up to a scratch of it unless there is a quantum left from before; how much is there.
size_t ShmRx::fetch(size_t wanted, size_t quantum) noexcept {
  if (fetched_ >= std::min(wanted, quantum)) return fetched_;
  const size_t bytes = std::min(wanted, scratch_bytes);
  if (!scratch_) scratch_.reset(new (std::nothrow) std::byte[scratch_bytes]);
  if (!scratch_) return errno = ENOMEM, give_up(), 0;
  if (!pull({scratch_.get(), bytes})) return 0;
  large_ = scratch_.get();
  return fetched_ = bytes;
}

// What comes next of the writer's private memory. False: nothing more will.
bool ShmRx::pull(std::span<std::byte> into) noexcept {
  if (puller_->pull(into, remote_)) return true;
  give_up();
  return false;
}

// errno says why.
void ShmRx::give_up() noexcept {
  log::line(log::Level::warn, int(rank_), "cannot read the private memory of rank {} any more: {}",
            from_.area->place().rank, std::strerror(errno));
  small_left_ = large_left_ = 0;
  broken_ = true;
}

void ShmRx::release(size_t bytes) noexcept {
  if (bytes == 0) return;
  if (small_left_ > 0) {
    small_ += bytes;
    small_left_ -= uint32_t(bytes);
  } else {
    large_left_ -= uint32_t(bytes);
    size_t here = bytes;  // of it in this process
    if (remote_ != 0) {
      here = std::min(fetched_, bytes);
      remote_ += bytes;
      fetched_ -= here;
    }
    large_ += here;
  }
  if (small_left_ + large_left_ > 0) return;
  borrowed_ = nullptr;
  remote_ = fetched_ = 0;
  store<releasing>(mine_.released, ++next_, own_barrier_);  // pairs with ShmTx::has_slot
  slot_ = after(slot_, slots_);
  wake_if_asleep(from_.area->header(), from_.ring);
}

size_t ShmRx::receive(std::span<std::byte> target) noexcept {
  size_t taken = 0;
  while (taken < target.size()) {
    const auto rest = target.subspan(taken);
    size_t n;
    if (look() && small_left_ == 0 && remote_ != 0) {
      n = std::min<size_t>(large_left_, rest.size());
      if (!pull(rest.first(n))) break;
    } else {
      const View view = peek(rest.size(), 1);
      n = view.bytes;
      if (n == 0) break;
      std::memcpy(rest.data(), view.data, n);
    }
    release(n);
    taken += n;
  }
  return taken;
}

}  // namespace rondo::shm
