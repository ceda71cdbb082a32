#include "transport/faulty/link.hpp"

#include <algorithm>
#include <cstring>

namespace rondo::faulty {
namespace {

// A send that is cut at a multiple of it never tears an element.
constexpr size_t grain = 16;
constexpr std::byte flip{0x5a};

}  // namespace

FaultyTx::FaultyTx(Tx& below, Injector& injector, Rank peer)
    : below_(below),
      injector_(injector),
      peer_(peer),
      waste_(below.caps().slot_bytes),
      flipped_(below.caps().slot_bytes) {}

// Whether nothing goes out now. Strikes what is due.
bool FaultyTx::blocked() noexcept {
  if (operation_ != injector_.operation()) position_ = 0;
  operation_ = injector_.operation();
  // What is to happen inside the next grain happens before it.
  injector_.carried(peer_, position_ + grain - 1);
  close_if_due();
  return injector_.stalls(peer_) || below_.completed() < flipped_until_;
}

void FaultyTx::close_if_due() noexcept {
  if (!closed_ && injector_.closes(peer_)) below_.close();
  closed_ = closed_ || injector_.closes(peer_);
}

LinkState FaultyTx::poll() noexcept {
  close_if_due();
  return injector_.stalls(peer_) ? LinkState::open : below_.poll();
}

void FaultyTx::count(size_t bytes) noexcept {
  position_ += bytes;
  passed_on_ += bytes;
}

std::span<std::byte> FaultyTx::acquire(size_t bytes) noexcept {
  if (blocked()) return {};
  acquired_ = injector_.drops(peer_) ? std::span(waste_).first(std::min(bytes, waste_.size()))
                                     : below_.acquire(bytes);
  return acquired_;
}

void FaultyTx::commit(size_t bytes) noexcept {
  if (acquired_.data() == waste_.data()) {
    position_ += bytes;
    dropped_ += bytes;
    return;
  }
  if (const auto at = injector_.corrupts(peer_, position_, bytes)) {
    acquired_[*at - position_] ^= flip;
    injector_.corrupted(peer_, *at);
  }
  below_.commit(bytes);
  count(bytes);
}

size_t FaultyTx::send(View source, Traffic traffic) noexcept {
  if (source.bytes == 0 || blocked()) return 0;
  if (injector_.drops(peer_)) {
    position_ += source.bytes;
    dropped_ += source.bytes;
    return source.bytes;
  }
  const uint64_t unharmed = injector_.unharmed(peer_, position_);
  if (unharmed >= grain && unharmed < source.bytes) source.bytes = unharmed / grain * grain;
  if (const auto at = injector_.corrupts(peer_, position_, source.bytes))
    return send_flipped({source.data, std::min(source.bytes, flipped_.size())}, *at);
  const size_t n = below_.send(source, traffic);
  count(n);
  return n;
}

size_t FaultyTx::send_flipped(View source, uint64_t at) noexcept {
  const uint64_t first = position_;
  if (at - first >= source.bytes) return 0;
  std::memcpy(flipped_.data(), source.data, source.bytes);
  flipped_[at - first] ^= flip;
  const size_t n = below_.send({flipped_.data(), source.bytes}, Traffic::one_way);
  count(n);
  flipped_until_ = passed_on_;
  if (at - first < n) injector_.corrupted(peer_, at);
  return n;
}

uint64_t FaultyTx::completed() const noexcept {
  const uint64_t below = below_.completed();
  return below < passed_on_ ? below : passed_on_ + dropped_;
}

LinkState FaultyRx::poll() noexcept {
  if (!closed_ && injector_.closes(peer_)) below_.close();
  closed_ = closed_ || injector_.closes(peer_);
  return injector_.stalls(peer_) ? LinkState::open : below_.poll();
}

View FaultyRx::peek(size_t max, size_t quantum) noexcept {
  return injector_.stalls(peer_) ? View{} : below_.peek(max, quantum);
}

size_t FaultyRx::receive(std::span<std::byte> target) noexcept {
  return injector_.stalls(peer_) ? 0 : below_.receive(target);
}

}  // namespace rondo::faulty
