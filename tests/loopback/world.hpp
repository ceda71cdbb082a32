// Ranks as threads over links of any kind: what the loopback tier runs on.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.hpp"
#include "lent.hpp"
#include "transport/fake/fake.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/tcp/fabric.hpp"

namespace rondo::test {

/// A connected pair of stream sockets, non-blocking: TCP over IPv4 or IPv6 loopback, or a Unix pair
/// (with kernel buffers far smaller than a window, where it is called tiny), or with TLS over TCP.
enum class SocketKind { tcp4, tcp6, unix_pair, tcp4_tiny, unix_tiny, tls, tls_tiny };
std::pair<Stream, Stream> socket_pair(SocketKind kind);
bool has_ipv6_loopback();

/// `world` engines with a thread each. Failures of every rank are kept for the test to look at.
class World {
 public:
  static World over_sockets(uint32_t world, SocketKind kind, const tcp::Sizes& sizes = {});
  /// All ranks use one mapping of each area: the thread sanitizer is blind to two of the same memory.
  static World over_shm(uint32_t world, const shm::Sizes& sizes = {});
  /// The same, with memory lent in pieces of `worth` bytes and more; buffer() gives some.
  static World over_lent_shm(uint32_t world, const shm::Sizes& sizes, size_t worth);
  /// Two ranks that pull private memory from pieces of `pulled` bytes on.
  static World over_pulled_shm(const shm::Sizes& sizes, size_t pulled);
  static World over_fake(uint32_t world, LinkCaps caps, const fake::Faults& faults);
  World(World&&) = default;
  ~World();

  /// Before the first call: the node of every rank. Without it all are on one.
  void spread(const std::vector<uint32_t>& nodes) { start(nodes); }
  uint32_t size() const { return uint32_t(ranks_->size()); }
  /// Runs body(rank, engine) on every rank and joins.
  void run(const std::function<void(Rank, engine::Engine&)>& body);
  engine::Engine& engine(Rank rank) { return *(*ranks_)[rank].engine; }
  engine::Failure& failure(Rank rank) { return (*ranks_)[rank].failure; }
  /// Any rank: every other rank's call ends with `aborted`.
  void fail_all();
  /// One of three pieces of memory of a rank that are lent; empty where nothing is lent.
  std::span<std::byte> buffer(Rank rank, size_t which) const {
    return buffers_.empty() ? std::span<std::byte>() : buffers_[3 * rank + which].span<std::byte>();
  }
  /// Bytes that the ranks have been referred to.
  uint64_t bytes_referred() const;
  engine::Waiter& waiter(Rank rank) { return *(*ranks_)[rank].waiter; }

 private:
  struct Member {
    engine::Failure failure;
    std::unique_ptr<engine::Waiter> waiter;
    std::unique_ptr<Fabric> fabric;
    std::unique_ptr<engine::Engine> engine;
  };
  explicit World(uint32_t world);
  void start(const std::vector<uint32_t>& nodes = {});

  std::unique_ptr<std::mutex> connecting_ = std::make_unique<std::mutex>();
  std::unique_ptr<std::vector<Member>> ranks_;
  std::unique_ptr<fake::Network> network_;
  std::shared_ptr<LentRanks> lent_;
  std::vector<Memory> buffers_;
  std::unique_ptr<Postmen> postmen_;
};

inline TimePoint soon() { return deadline_after(milliseconds(20000)); }

}  // namespace rondo::test
