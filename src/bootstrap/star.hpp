// The control plane: every rank holds one connection to rank 0, which passes messages on.
//
//        1   2              Hub    rank 0: gathers the ranks, then forwards
//         \ /               Spoke  every other rank: finds rank 0, joins, then talks to it
//     3 -- 0 -- 4
//
// After joining, both are the same to their owner: send() to a rank or to everyone, deliver() what arrives.
// An end of a connection that was not announced by `leave` becomes a `failed` message that names the rank.
#pragma once
#include <memory>
#include <vector>

#include "base/advertised.hpp"
#include "base/clock.hpp"
#include "base/port_range.hpp"
#include "base/root_address.hpp"
#include "bootstrap/door.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/meeting.hpp"
#include "bootstrap/service.hpp"
#include "bootstrap/wire.hpp"

namespace rondo::bootstrap {

/// Of this rank, and why it is where it is: "interface eth0: ..."
struct DataListener {
  Descriptor socket;
  std::string why;
};

/// Service thread.
class StarOwner {
 public:
  virtual ~StarOwner() = default;
  /// Exactly one of these two, once. `listener` is this rank's data listener.
  virtual void joined(Welcome welcome, DataListener listener) = 0;
  virtual void join_failed(const Error& error) = 0;
  /// After joined(): a message for this rank, of any kind but join and welcome.
  virtual void deliver(const Message& message) = 0;
};

/// Service thread. Calls its owner only from handlers, and not after close().
class Star {
 public:
  virtual ~Star() = default;
  virtual void start() = 0;
  virtual void send(const Message& message) = 0;
  /// The process of this rank has ended, as this machine's kernel says: as if its connection had.
  virtual void ended(Rank rank) = 0;
  /// Rank 0: for how long nothing has come from each rank.
  virtual std::vector<uint64_t> silence_ms() const { return {}; }
  /// What was sent still arrives.
  virtual void close() noexcept = 0;
};

struct StarSetup {
  std::weak_ptr<Service> service;  // weak: the service thread must not be the one to end itself
  asio::io_context& context;
  RootAddress root;
  Credentials credentials;
  Rank rank;
  uint32_t world;
  milliseconds timeout;
  TimePoint deadline;
  Limits limits;
  Person person;
  std::string interfaces;  // Options::interfaces
  PortRange ports;
  Advertised advertised;  // Options::advertise
  ListenAddress listen;   // Options::listen, of rank 0
  Meeting meeting;
  Transport transport;
  Policy policy;
  milliseconds heartbeat;            // Options::heartbeat
  std::optional<Error> excuse = {};  // set: this rank cannot take part, and is here only to say why
};

std::shared_ptr<Star> make_hub(const StarSetup& setup, std::weak_ptr<StarOwner> owner);
std::shared_ptr<Star> make_spoke(const StarSetup& setup, std::weak_ptr<StarOwner> owner);

/// A dying process closes its connections a moment before its parent can see that it is dead. Others must not
/// learn of it, and end because of it, before the launcher knows who was first.
inline constexpr milliseconds loss_delay{30};
/// How long what may be the consequence of a death waits for news of one: for all of the above, on a busy machine.
inline constexpr milliseconds news_patience{250};
void later(asio::io_context& context, milliseconds delay, std::function<void()> call);

/// Of what `from` has run into itself; its receivers say who reported it.
Message failure_message(Rank from, const Error& error);
/// Of what the control plane has found out; the text is complete.
Message finding_message(Rank from, const Error& error);
/// Where the other ranks dial a listener of this rank at `bound`.
Address as_others_see(const StarSetup& setup, const Address& bound);
/// No rank can be on another machine: nothing but loopback leads to rank 0, or there is no secret.
bool one_machine(const StarSetup& setup);
/// Where this rank's peers find it; `control` is its own address on a control connection, where that is TCP.
Result<DataListener> open_data_listener(const StarSetup& setup,
                                        const std::optional<asio::ip::address>& control);
/// Without a secret only this machine's own addresses will do.
std::optional<Error> needs_secret(const StarSetup& setup, const Address& address);

}  // namespace rondo::bootstrap
