// The ranks of one machine give each other their shared memory, each pair over an abstract Unix socket of its
// own: the lower rank dials, both prove the job's secret and are of one user, then
//
//   memory    here is my descriptor           --> the other attaches it and writes something for this rank
//   attached  I have attached yours           --> the other checks what this rank has written
//   checked   and seen what you wrote         --> the other confirms that this rank has seen it
//
// Nothing has a name in a file system and nothing but the kernel's credentials is trusted, so other PID, IPC
// and mount namespaces make no difference; another network namespace has other abstract sockets.
//
// A rank reports at once what it has itself seen go wrong, else when it is through with all its peers.
#pragma once
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "bootstrap/dial.hpp"
#include "bootstrap/door.hpp"

namespace rondo::bootstrap {

/// Where the rank with this name waits for its peers.
Address door_address(const DoorName& name);

/// Service thread. Calls its owner only from handlers, and not after close().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using Use = std::function<Result<void>(Sharing&)>;
  struct Owner {
    std::function<Result<void>(const Use&)> with_sharing;  // an error when that is gone
    std::function<void(const Shared&)> report;             // once
  };
  /// `job` outlives it.
  Exchange(asio::io_context& context, const Credentials& credentials, const Limits& limits, Rank rank,
           const Welcome& job);
  void start(Descriptor listener, TimePoint deadline, Owner owner);
  void close() noexcept;

 private:
  class Pair;
  struct Peer {
    std::shared_ptr<Dial> dial;
    std::shared_ptr<Pair> pair;
    bool settled = false;
  };

  void open_door(Descriptor listener);
  void dial_next();
  void dial(Rank peer);
  void dialled(Rank peer, Socket socket, const std::optional<Dial::Failure>& failure);
  void short_of_descriptors(const std::string& why);
  void meet(Rank peer, Socket socket);
  void settle(Rank peer, const Shared& outcome);
  void out_of_time();
  void report(const Shared& outcome);
  Shared failed(Rank peer, bool consequence, const std::string& why) const;

  asio::io_context& context_;
  const Credentials credentials_;
  const Limits limits_;
  const Rank rank_;
  const Welcome& job_;
  Owner owner_;
  int memory_ = -1;  // the owner's
  TimePoint deadline_{};
  asio::steady_timer timer_;
  std::shared_ptr<Door> door_;
  std::vector<Peer> peers_;  // by rank
  size_t unsettled_ = 0;
  Rank next_dial_ = 0;
  size_t dialling_ = 0;
  std::optional<TimePoint> short_since_;  // no descriptor has come free since
  std::optional<Shared> failure_;
  bool reported_ = false, closed_ = false;
};

}  // namespace rondo::bootstrap
