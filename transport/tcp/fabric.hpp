// The TCP links of one communicator. Who makes the sockets is not this room's business: it asks through a
// function and is given connected, proven sockets by adopt().
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "transport/tcp/connection.hpp"

namespace rondo::tcp {

class TcpFabric final : public Fabric {
 public:
  /// `connect` starts making the connection and returns at once; its outcome comes by adopt().
  using Connect = std::function<void(Rank peer, Lane lane)>;
  explicit TcpFabric(Connect connect, const Sizes& sizes = {})
      : connect_(std::move(connect)), sizes_(sizes) {}

  LinkCaps link_caps() const noexcept override {
    return {.slot_bytes = sizes_.slot_bytes, .slots = sizes_.slots};
  }
  Result<Pair> open(Rank peer, Lane lane) noexcept override;
  Rx* arrived(Rank peer) noexcept override;
  void arm(bool) noexcept override {}  // the descriptors wake an epoll that watches them
  void close() noexcept override;
  /// Any thread. A second socket for a link that has one is closed.
  void adopt(Rank peer, Lane lane, Result<Stream> stream);

 private:
  struct Slot {
    bool asked = false;
    std::unique_ptr<Connection> connection;
    std::optional<Error> error;
  };

  Connect connect_;
  Sizes sizes_;
  std::mutex mutex_;  // slots_ and closed_; the connections themselves belong to the driver
  std::map<std::pair<Rank, Lane>, Slot> slots_;
  bool closed_ = false;
};

}  // namespace rondo::tcp
