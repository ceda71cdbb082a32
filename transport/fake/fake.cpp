#include "transport/fake/fake.hpp"

#include <algorithm>
#include <cstring>

namespace rondo::fake {

class Pipe {
 public:
  Pipe(LinkCaps caps, Faults faults, uint64_t salt, std::function<void()> ring_reader,
       std::function<void()> ring_writer)
      : caps_(caps),
        faults_(faults),
        random_(faults.seed * 7919 + salt),
        ring_reader_(std::move(ring_reader)),
        ring_writer_(std::move(ring_writer)) {}

  const LinkCaps& caps() const noexcept { return caps_; }

  size_t write(View source) {
    size_t n = 0;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return 0;
      if (chance(faults_.write_refused)) return ring_writer_(), 0;
      n = std::min({source.bytes, faults_.largest_write, room(), size_t(faults_.close_after - accepted_)});
      bytes_.insert(bytes_.end(), source.data, source.data + n);
      accepted_ += n;
      if (accepted_ == faults_.close_after) closed_ = true;
    }
    ring_reader_();
    return n;
  }

  bool refuses() {
    const std::lock_guard lock(mutex_);
    if (!closed_ && chance(faults_.write_refused)) return ring_writer_(), true;
    return closed_;
  }

  size_t read(std::span<std::byte> target) {
    size_t n = 0;
    {
      const std::lock_guard lock(mutex_);
      if (chance(faults_.read_hidden)) return ring_reader_(), 0;
      n = std::min({target.size(), bytes_.size(), size_t(faults_.stall_after - delivered_)});
      std::copy_n(bytes_.begin(), n, target.begin());
      bytes_.erase(bytes_.begin(), bytes_.begin() + ptrdiff_t(n));
      delivered_ += n;
    }
    ring_writer_();
    return n;
  }

  LinkState state(bool reader) {
    const std::lock_guard lock(mutex_);
    return closed_ && (!reader || bytes_.empty()) ? LinkState::closed : LinkState::open;
  }
  uint64_t accepted() {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ring_reader_();
    ring_writer_();
  }

 private:
  bool chance(double probability) {
    return probability > 0 && std::bernoulli_distribution(probability)(random_);
  }
  size_t room() const { return faults_.capacity - std::min(faults_.capacity, bytes_.size()); }

  LinkCaps caps_;
  Faults faults_;
  std::mutex mutex_;  // everything below
  std::mt19937_64 random_;
  std::deque<std::byte> bytes_;
  uint64_t accepted_ = 0, delivered_ = 0;
  bool closed_ = false;
  std::function<void()> ring_reader_, ring_writer_;
};

namespace {

// Committed blocks wait here until the pipe takes them, so that short writes never tear a block's memory.
class PipeTx final : public Tx {
 public:
  explicit PipeTx(Pipe& pipe) : pipe_(pipe), block_(pipe.caps().slot_bytes) {}
  const LinkCaps& caps() const noexcept override { return pipe_.caps(); }
  LinkState poll() noexcept override {
    flush();
    return pipe_.state(false);
  }
  int descriptor() const noexcept override { return -1; }
  void close() noexcept override { pipe_.close(); }
  std::span<std::byte> acquire(size_t bytes) noexcept override {
    const size_t limit = size_t(caps().slot_bytes) * caps().slots;
    if (staged_.size() + bytes > limit || pipe_.refuses()) return {};
    return std::span(block_).first(std::min(bytes, block_.size()));
  }
  void commit(size_t bytes) noexcept override {
    staged_.insert(staged_.end(), block_.begin(), block_.begin() + ptrdiff_t(bytes));
    flush();
  }
  size_t send(View source, Traffic) noexcept override {
    flush();
    return staged_.empty() ? pipe_.write(source) : 0;
  }
  uint64_t completed() const noexcept override { return pipe_.accepted(); }

 private:
  void flush() noexcept {
    const size_t n = staged_.empty() ? 0 : pipe_.write({staged_.data(), staged_.size()});
    staged_.erase(staged_.begin(), staged_.begin() + ptrdiff_t(n));
  }

  Pipe& pipe_;
  std::vector<std::byte> block_, staged_;
};

class PipeRx final : public Rx {
 public:
  explicit PipeRx(Pipe& pipe) : pipe_(pipe) {}
  const LinkCaps& caps() const noexcept override { return pipe_.caps(); }
  LinkState poll() noexcept override { return held_.empty() ? pipe_.state(true) : LinkState::open; }
  int descriptor() const noexcept override { return -1; }
  void close() noexcept override { pipe_.close(); }
  View peek(size_t max, size_t quantum) noexcept override {
    max = std::min<size_t>(max, caps().slot_bytes);
    if (held_.size() < max) {
      const size_t before = held_.size();
      held_.resize(max);
      held_.resize(before + pipe_.read(std::span(held_).subspan(before)));
    }
    return {held_.data(), std::min(held_.size(), max) / quantum * quantum};
  }
  void release(size_t bytes) noexcept override {
    held_.erase(held_.begin(), held_.begin() + ptrdiff_t(bytes));
  }
  size_t receive(std::span<std::byte> target) noexcept override {
    const size_t n = std::min(held_.size(), target.size());
    std::copy_n(held_.begin(), n, target.begin());
    release(n);
    return n < target.size() ? n + pipe_.read(target.subspan(n)) : n;
  }

 private:
  Pipe& pipe_;
  std::vector<std::byte> held_;
};

}  // namespace

class Network::RankFabric final : public Fabric {
 public:
  RankFabric(Network& network, Rank rank) : network_(network), rank_(rank) {}
  LinkCaps link_caps() const noexcept override { return network_.caps_; }
  Result<Pair> open(Rank peer, Lane) noexcept override {
    auto& link = links_[peer];
    if (!link.first) {
      link.first = std::make_unique<PipeTx>(network_.pipe(rank_, peer));
      link.second = std::make_unique<PipeRx>(network_.pipe(peer, rank_));
    }
    return Pair{link.first.get(), link.second.get()};
  }
  Rx* arrived(Rank peer) noexcept override { return open(peer, 0)->rx; }
  void arm(bool) noexcept override {}  // every change rings
  void close() noexcept override {
    for (Rank peer = 0; peer < network_.world_; peer++) {
      network_.pipe(rank_, peer).close();
      network_.pipe(peer, rank_).close();
    }
  }

 private:
  Network& network_;
  Rank rank_;
  std::map<Rank, std::pair<std::unique_ptr<PipeTx>, std::unique_ptr<PipeRx>>> links_;
};

Network::Network(uint32_t world, LinkCaps caps, Faults faults, std::function<void(Rank)> ring)
    : caps_(caps), faults_(faults), ring_(std::move(ring)), world_(world) {
  for (Rank from = 0; from < world; from++)
    for (Rank to = 0; to < world; to++)
      pipes_.push_back(std::make_unique<Pipe>(
          caps, faults, uint64_t(from) * world + to, [this, to] { ring_(to); },
          [this, from] { ring_(from); }));
}
Network::~Network() = default;

std::unique_ptr<Fabric> Network::fabric(Rank rank) { return std::make_unique<RankFabric>(*this, rank); }
Pipe& Network::pipe(Rank from, Rank to) { return *pipes_[size_t(from) * world_ + to]; }

}  // namespace rondo::fake
