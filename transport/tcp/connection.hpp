// Both ends of the links between two ranks over one connected stream socket (TCP, or a Unix socket pair in
// tests).
//
//   Tx   acquire/commit --> [slot][slot][slot] --+
//        send (small)   ------------^            +--> sendmsg --> socket
//        send (large)   -------------------------+                           staged bytes always go first
//
//   Rx   socket --> recvmsg --+--> receive's target, straight into place (large)
//                             +--> [read buffer] --> peek/release, receive (small)
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "transport/link.hpp"

namespace rondo::tcp {

/// Sizes in bytes. Both ends of a connection must use the same slot_bytes and slots.
struct Sizes {
  uint32_t slot_bytes = 32 << 10;
  uint16_t slots = 5;
  uint32_t call_bytes = 64 << 10;  // largest single read into or write from the caller's memory
};

/// The socket and its fate, shared by both ends.
class Socket {
 public:
  explicit Socket(Stream stream) noexcept : stream_(std::move(stream)) {}
  int fd() const noexcept { return stream_.descriptor.get(); }
  // The driver.
  Moved write(std::span<iovec> parts) noexcept { return stream_.write(parts); }
  Moved read(std::span<iovec> parts) noexcept { return stream_.read(parts); }
  bool unsent() const noexcept { return stream_.unsent(); }
  LinkState state() const noexcept { return state_.load(std::memory_order_relaxed); }
  // The first bad end stays.
  void end(LinkState state) noexcept {
    LinkState open = LinkState::open;
    state_.compare_exchange_strong(open, state, std::memory_order_relaxed);
  }
  // Any thread. shutdown() keeps the descriptor valid for a driver that is using it, and wakes its epoll.
  void close() noexcept;

 private:
  Stream stream_;
  std::atomic<LinkState> state_{LinkState::open};
};

class SocketTx final : public Tx {
 public:
  SocketTx(Socket& socket, const Sizes& sizes);
  const LinkCaps& caps() const noexcept override { return caps_; }
  LinkState poll() noexcept override;
  int descriptor() const noexcept override { return socket_.fd(); }
  void close() noexcept override { socket_.close(); }
  std::span<std::byte> acquire(size_t bytes) noexcept override;
  void commit(size_t bytes) noexcept override;
  size_t send(View source, Traffic) noexcept override;
  uint64_t completed() const noexcept override { return written_; }

 private:
  struct Slot {
    uint32_t begin = 0, end = 0;
  };
  std::byte* memory(uint64_t slot) noexcept { return memory_.get() + (slot % caps_.slots) * stride_; }
  Slot& at(uint64_t slot) noexcept { return slots_[slot % caps_.slots]; }
  size_t write(View source) noexcept;
  size_t retire(size_t bytes) noexcept;

  Socket& socket_;
  LinkCaps caps_;
  uint32_t call_bytes_, stride_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<Slot> slots_;
  uint64_t head_ = 0, tail_ = 0;  // slots [head_, tail_) hold bytes that are not written yet
  bool fresh_ = false;            // acquire gave slot tail_, not the rest of slot tail_-1
  uint64_t accepted_ = 0;         // bytes of slots and callers that the socket has taken
  uint64_t written_ = 0;          // the same, but for what its TLS session has not yet passed on
};

class SocketRx final : public Rx {
 public:
  SocketRx(Socket& socket, const Sizes& sizes);
  const LinkCaps& caps() const noexcept override { return caps_; }
  LinkState poll() noexcept override;
  int descriptor() const noexcept override { return socket_.fd(); }
  void close() noexcept override { socket_.close(); }
  View peek(size_t max, size_t quantum) noexcept override;
  void release(size_t bytes) noexcept override { begin_ += bytes; }
  size_t receive(std::span<std::byte> target) noexcept override;

 private:
  size_t buffered() const noexcept { return end_ - begin_; }
  size_t take(std::span<std::byte> target) noexcept;
  size_t read(std::span<std::byte> first, size_t ahead) noexcept;

  Socket& socket_;
  LinkCaps caps_;
  uint32_t call_bytes_, capacity_;
  std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0, end_ = 0;
};

class Connection {
 public:
  Connection(Stream stream, const Sizes& sizes)
      : socket_(std::move(stream)), tx_(socket_, sizes), rx_(socket_, sizes) {}
  SocketTx& tx() noexcept { return tx_; }
  SocketRx& rx() noexcept { return rx_; }
  void close() noexcept { socket_.close(); }

 private:
  Socket socket_;
  SocketTx tx_;
  SocketRx rx_;
};

}  // namespace rondo::tcp
