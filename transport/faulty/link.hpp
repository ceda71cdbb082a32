// The two ends of a link that may misbehave.
#pragma once
#include <vector>

#include "transport/faulty/injector.hpp"
#include "transport/link.hpp"

namespace rondo::faulty {

class FaultyTx final : public Tx {
 public:
  /// `peer`: everyone for a publication.
  FaultyTx(Tx& below, Injector& injector, Rank peer);
  const LinkCaps& caps() const noexcept override { return below_.caps(); }
  LinkState poll() noexcept override;
  int descriptor() const noexcept override { return below_.descriptor(); }
  void close() noexcept override { below_.close(); }
  std::span<std::byte> acquire(size_t bytes) noexcept override;
  void commit(size_t bytes) noexcept override;
  size_t send(View source, Traffic traffic) noexcept override;
  uint64_t completed() const noexcept override;

 private:
  bool blocked() noexcept;
  void count(size_t bytes) noexcept;
  void close_if_due() noexcept;
  size_t send_flipped(View source, uint64_t at) noexcept;

  Tx& below_;
  Injector& injector_;
  const Rank peer_;
  uint64_t operation_ = 0, position_ = 0;  // in the stream of that operation
  uint64_t passed_on_ = 0, dropped_ = 0;   // bytes, of all operations
  std::span<std::byte> acquired_;
  std::vector<std::byte> waste_;    // where dropped bytes are produced
  std::vector<std::byte> flipped_;  // a piece with a wrong byte, until the link below has done with it
  uint64_t flipped_until_ = 0;
  bool closed_ = false;
};

class FaultyRx final : public Rx {
 public:
  FaultyRx(Rx& below, Injector& injector, Rank peer) : below_(below), injector_(injector), peer_(peer) {}
  const LinkCaps& caps() const noexcept override { return below_.caps(); }
  LinkState poll() noexcept override;
  int descriptor() const noexcept override { return below_.descriptor(); }
  void close() noexcept override { below_.close(); }
  View peek(size_t max, size_t quantum) noexcept override;
  void release(size_t bytes) noexcept override { below_.release(bytes); }
  size_t receive(std::span<std::byte> target) noexcept override;

 private:
  Rx& below_;
  Injector& injector_;
  const Rank peer_;
  bool closed_ = false;
};

}  // namespace rondo::faulty
