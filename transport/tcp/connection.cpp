#include "transport/tcp/connection.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace rondo::tcp {
namespace {

// A slot's last bytes may stay unused when less than this is left of it.
constexpr size_t smallest_piece = 256;
// What a slot holds beyond a full segment: the waste above and a message header, so that W segments need W
// slots.
constexpr uint32_t slot_slack = smallest_piece + 64;
// Sends up to this size are copied and leave together with what follows; a copy is cheaper than a call.
constexpr size_t small_send = 2 << 10;
// Bytes read ahead of what was asked for: a small message then needs one call, and a large one copies little.
constexpr size_t read_ahead = 2 << 10;

iovec part(const std::byte* data, size_t bytes) noexcept { return {const_cast<std::byte*>(data), bytes}; }

void note(Socket& socket, const Moved& moved) noexcept {
  if (moved.error != 0) socket.end(LinkState::failed);
  if (moved.ended) socket.end(LinkState::closed);
}

}  // namespace

void Socket::close() noexcept {
  end(LinkState::closed);
  ::shutdown(fd(), SHUT_RDWR);
}

SocketTx::SocketTx(Socket& socket, const Sizes& sizes)
    : socket_(socket),
      caps_{.slot_bytes = sizes.slot_bytes, .slots = sizes.slots},
      call_bytes_(sizes.call_bytes),
      stride_(sizes.slot_bytes + slot_slack),
      memory_(new std::byte[size_t(stride_) * sizes.slots]),
      slots_(sizes.slots) {}

std::span<std::byte> SocketTx::acquire(size_t bytes) noexcept {
  if (socket_.state() != LinkState::open) return {};
  bytes = std::min<size_t>(bytes, caps_.slot_bytes);
  if (tail_ > head_) {
    const Slot& last = at(tail_ - 1);
    const size_t room = stride_ - last.end;
    if (room >= std::min(bytes, smallest_piece)) {
      fresh_ = false;
      return {memory(tail_ - 1) + last.end, std::min(bytes, room)};
    }
  }
  if (tail_ - head_ == caps_.slots) return {};
  fresh_ = true;
  return {memory(tail_), bytes};
}

void SocketTx::commit(size_t bytes) noexcept {
  if (fresh_) at(tail_++) = {};
  assert(at(tail_ - 1).end + bytes <= stride_);
  at(tail_ - 1).end += uint32_t(bytes);
}

size_t SocketTx::send(View source, Traffic) noexcept {
  if (source.bytes <= small_send) {
    if (const auto room = acquire(source.bytes); room.size() == source.bytes) {
      std::memcpy(room.data(), source.data, source.bytes);
      commit(source.bytes);
      return source.bytes;
    }
  }
  return write(source);
}

LinkState SocketTx::poll() noexcept {
  if (head_ != tail_ || socket_.unsent()) write({});
  return socket_.state();
}

// Writes staged bytes, then `source`, in one call; returns how much of `source` was accepted.
size_t SocketTx::write(View source) noexcept {
  if (socket_.state() != LinkState::open) return 0;
  std::array<iovec, 8> parts;
  size_t used = 0, staged = 0;
  uint64_t slot = head_;
  for (; slot != tail_ && used + 1 < parts.size() && staged < call_bytes_; slot++) {
    const Slot& s = at(slot);
    parts[used++] = part(memory(slot) + s.begin, s.end - s.begin);
    staged += s.end - s.begin;
  }
  const bool room = slot == tail_ && staged < call_bytes_;
  if (room && source.bytes > 0)
    parts[used++] = part(source.data, std::min<size_t>(source.bytes, call_bytes_ - staged));
  if (used == 0 && !socket_.unsent()) return 0;
  const Moved moved = socket_.write(std::span(parts).first(used));
  note(socket_, moved);
  accepted_ += moved.bytes;
  if (!socket_.unsent()) written_ = accepted_;
  return retire(moved.bytes);
}

// Frees the slots that `bytes` written bytes cover; returns what is left over, which came from the caller's
// memory.
size_t SocketTx::retire(size_t bytes) noexcept {
  while (bytes > 0 && head_ != tail_) {
    Slot& slot = at(head_);
    const auto n = uint32_t(std::min<size_t>(bytes, slot.end - slot.begin));
    slot.begin += n;
    bytes -= n;
    if (slot.begin == slot.end) head_++;
  }
  return bytes;
}

SocketRx::SocketRx(Socket& socket, const Sizes& sizes)
    : socket_(socket),
      caps_{.slot_bytes = sizes.slot_bytes, .slots = sizes.slots},
      call_bytes_(sizes.call_bytes),
      capacity_(uint32_t(sizes.slot_bytes + read_ahead)),
      buffer_(new std::byte[capacity_]) {}

LinkState SocketRx::poll() noexcept { return buffered() > 0 ? LinkState::open : socket_.state(); }

View SocketRx::peek(size_t max, size_t quantum) noexcept {
  max = std::min<size_t>(max, caps_.slot_bytes);
  if (buffered() < quantum) {
    if (begin_ > 0) std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
    end_ = buffered();
    begin_ = 0;
    read({}, std::max(max, read_ahead) - end_);
  }
  const size_t ready = std::min(buffered(), max) / quantum * quantum;
  return {buffer_.get() + begin_, ready};
}

size_t SocketRx::receive(std::span<std::byte> target) noexcept {
  const size_t copied = take(target);
  target = target.subspan(copied);
  if (target.empty()) return copied;
  begin_ = end_ = 0;
  if (target.size() > read_ahead)
    return copied + read(target.first(std::min<size_t>(target.size(), call_bytes_)), read_ahead);
  read({}, capacity_);
  return copied + take(target);
}

// Buffered bytes into `target`.
size_t SocketRx::take(std::span<std::byte> target) noexcept {
  const size_t n = std::min(buffered(), target.size());
  std::memcpy(target.data(), buffer_.get() + begin_, n);
  begin_ += n;
  return n;
}

// One call: into `first`, then up to `ahead` bytes into the buffer; returns how much went into `first`.
size_t SocketRx::read(std::span<std::byte> first, size_t ahead) noexcept {
  if (socket_.state() != LinkState::open) return 0;
  std::array<iovec, 2> parts;
  size_t used = 0;
  if (!first.empty()) parts[used++] = part(first.data(), first.size());
  parts[used++] = part(buffer_.get() + end_, std::min<size_t>(ahead, capacity_ - end_));
  const Moved moved = socket_.read(std::span(parts).first(used));
  note(socket_, moved);
  const size_t direct = std::min(moved.bytes, first.size());
  end_ += moved.bytes - direct;
  return direct;
}

}  // namespace rondo::tcp
