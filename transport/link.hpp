// A link is a one-way pipe between two ranks that only moves bytes. Its ends are Tx and Rx. What a link can
// do beyond that is data (LinkCaps); every function below works on every link.
//
// Threads: only the communicator's driver calls these, except close(). None blocks, throws or allocates.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rondo/result.hpp"

namespace rondo {

struct LinkCaps {
  uint32_t slot_bytes = 0;  // largest block that acquire gives and peek shows, agreed by both ends
  uint16_t slots = 0;       // blocks that can be committed and not yet released; window <= slots - 1
  uint32_t readers = 1;     // of every block; it is free again when all have released it
};

struct View {
  const std::byte* data = nullptr;
  size_t bytes = 0;  // 0: nothing there yet
};

// What the peer does while it takes what is sent to it: sends as much itself, or only takes. A receiver that
// has nothing else to do had better be helped with the copying.
enum class Traffic : uint8_t { both_ways, one_way };

enum class LinkState : uint8_t { open, failed, closed };

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual const LinkCaps& caps() const noexcept = 0;
  // Moves what waits inside the endpoint. After `failed` or `closed` the other calls accept and give nothing.
  virtual LinkState poll() noexcept = 0;
  // A descriptor to wait for, edge-triggered, for reading and writing; -1 when the doorbell does it.
  virtual int descriptor() const noexcept = 0;
  // Any thread; idempotent. The peer sees `closed`.
  virtual void close() noexcept = 0;
};

class Tx : public Endpoint {
 public:
  // Memory in which to produce the next bytes of the stream: at most slot_bytes, and less than asked for when
  // a block has that much room left; at least 256 bytes where as much was asked for. Empty: no credit now.
  virtual std::span<std::byte> acquire(size_t bytes) noexcept = 0;
  // The first `bytes` of the acquired memory are the next of the stream.
  virtual void commit(size_t bytes) noexcept = 0;
  // Bytes accepted from the caller's own memory, maybe fewer than offered; 0: no credit now. Unlike acquire,
  // which has `slots` blocks whatever the peer does, it may depend on the peer's reading for any byte.
  virtual size_t send(View source, Traffic traffic = Traffic::both_ways) noexcept = 0;
  // Position in the stream before which all sources are the caller's again.
  virtual uint64_t completed() const noexcept = 0;
};

class Rx : public Endpoint {
 public:
  // What has arrived, contiguous: a multiple of `quantum`, at most `max` bytes.
  virtual View peek(size_t max, size_t quantum) noexcept = 0;
  // Done with the first `bytes` of what peek showed.
  virtual void release(size_t bytes) noexcept = 0;
  // The next bytes of the stream straight into the caller's memory; how many.
  virtual size_t receive(std::span<std::byte> target) noexcept = 0;
};

using Lane = uint16_t;

// Opens links to the peers of one communicator. Driver thread.
class Fabric {
 public:
  struct Pair {
    Tx* tx = nullptr;
    Rx* rx = nullptr;
  };
  virtual ~Fabric() = default;
  // What every link of it can do, the same on every rank.
  virtual LinkCaps link_caps() const noexcept = 0;
  // Starts connecting to `peer` where that has not happened, and returns at once; both null while it is under
  // way. The doorbell rings when it is done. The endpoints live as long as the fabric.
  virtual Result<Pair> open(Rank peer, Lane lane) noexcept = 0;
  // What comes from a peer on lane 0, where that link is there already; connects nothing.
  virtual Rx* arrived(Rank) noexcept { return nullptr; }
  // One writer, many readers: what this rank publishes to all other ranks of the communicator, and where it
  // reads what `peer` publishes. Null where the ranks cannot all see one memory; the same on every rank.
  virtual Tx* publication() noexcept { return nullptr; }
  virtual Rx* publication_of(Rank) noexcept { return nullptr; }
  // The driver is about to sleep (true): it must try its links once more before it does; or is awake again
  // (false).
  virtual void arm(bool asleep) noexcept = 0;
  // Any thread: closes every link.
  virtual void close() noexcept = 0;
};

}  // namespace rondo
