#include "transport/shm/link.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace rondo::shm {
namespace {

constexpr auto in_order = std::memory_order_seq_cst;
// Elements have at most 16 bytes: a send that is cut at a multiple of it never tears one between two slots.
constexpr size_t grain = 16;
// Less room than this, and a fresh slot is begun.
constexpr size_t smallest_piece = 256;

LinkCaps caps_of(const Sizes& sizes) { return {.slot_bytes = sizes.slot_bytes, .slots = sizes.slots}; }

void wake_if_asleep(const Place& place, const Ring& ring) noexcept {
  if (place.theirs->header().asleep.load(in_order) != 0) ring();
}

void end(const Place& place, const Ring& ring) noexcept {
  place.mine->block(place.peer).ended.store(1, in_order);
  ring();
}

bool ended(const Place& place) noexcept {
  return place.mine->block(place.peer).ended.load(in_order) != 0 ||
         place.theirs->block(place.self).ended.load(in_order) != 0;
}

}  // namespace

void set_asleep(Area& area, bool asleep) noexcept { area.header().asleep.store(asleep, in_order); }

ShmTx::ShmTx(const Place& place, Ring ring)
    : place_(place),
      caps_(caps_of(place.mine->sizes())),
      ring_(std::move(ring)),
      block_(place.mine->block(place.peer)),
      released_(place.theirs->block(place.self).released) {}

LinkState ShmTx::poll() noexcept {
  if (filled_ > 0) publish();
  return ended(place_) ? LinkState::closed : LinkState::open;
}

void ShmTx::close() noexcept { end(place_, ring_); }

// Bytes left for a segment in the slot being filled; 0 when the reader still has it.
size_t ShmTx::room() noexcept {
  if (next_ - given_back_ >= caps_.slots) given_back_ = released_.load(in_order);
  return next_ - given_back_ >= caps_.slots ? 0 : caps_.slot_bytes + preamble_ - filled_;
}

void ShmTx::publish() noexcept {
  block_.lengths[next_ % caps_.slots] = std::exchange(filled_, 0);
  preamble_ = 0;
  block_.committed.store(++next_, in_order);  // pairs with ShmRx::peek
  wake_if_asleep(place_, ring_);
}

std::span<std::byte> ShmTx::acquire(size_t bytes) noexcept {
  if (filled_ > 0 && room() < std::min(bytes, smallest_piece)) publish();
  const size_t n = std::min(bytes, room());
  return {place_.mine->slot(place_.peer, next_) + filled_, n};
}

void ShmTx::commit(size_t bytes) noexcept {
  filled_ += uint32_t(bytes);
  assert(filled_ <= caps_.slot_bytes + preamble_);
  accepted_ += bytes;
  publish();
}

size_t ShmTx::send(View source) noexcept {
  size_t sent = 0;
  while (sent < source.bytes && !ended(place_)) {
    const size_t left = source.bytes - sent, space = room();
    const size_t n = left <= space ? left : space / grain * grain;
    if (n > 0) std::memcpy(place_.mine->slot(place_.peer, next_) + filled_, source.data + sent, n);
    if (filled_ == preamble_ && filled_ + n <= preamble_bytes) preamble_ += uint32_t(n);
    filled_ += uint32_t(n);
    sent += n;
    if (n == left) break;
    if (filled_ == 0) break;  // no slot is free
    publish();
  }
  accepted_ += sent;
  return sent;
}

ShmRx::ShmRx(const Place& place, Ring ring)
    : place_(place),
      caps_(caps_of(place.mine->sizes())),
      ring_(std::move(ring)),
      theirs_(place.theirs->block(place.self)),
      released_(place.mine->block(place.peer).released) {}

LinkState ShmRx::poll() noexcept {
  const bool over = ended(place_);  // before the look at what is there: it was published earlier
  return over && theirs_.committed.load(in_order) == next_ ? LinkState::closed : LinkState::open;
}

void ShmRx::close() noexcept { end(place_, ring_); }

View ShmRx::peek(size_t max, size_t quantum) noexcept {
  if (next_ == ready_) ready_ = theirs_.committed.load(in_order);  // pairs with ShmTx::publish
  if (next_ == ready_) return {};
  const size_t there = theirs_.lengths[next_ % caps_.slots] - used_;
  return {place_.theirs->slot(place_.self, next_) + used_, std::min(there, max) / quantum * quantum};
}

void ShmRx::release(size_t bytes) noexcept {
  used_ += uint32_t(bytes);
  if (used_ < theirs_.lengths[next_ % caps_.slots]) return;
  used_ = 0;
  released_.store(++next_, in_order);  // pairs with ShmTx::room
  wake_if_asleep(place_, ring_);
}

size_t ShmRx::receive(std::span<std::byte> target) noexcept {
  size_t taken = 0;
  while (taken < target.size()) {
    const View view = peek(target.size() - taken, 1);
    if (view.bytes == 0) break;
    std::memcpy(target.data() + taken, view.data, view.bytes);
    release(view.bytes);
    taken += view.bytes;
  }
  return taken;
}

}  // namespace rondo::shm
