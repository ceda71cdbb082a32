// The side of every rank but 0 of the control plane: finds rank 0, however late it starts, and joins.
#pragma once
#include <asio/steady_timer.hpp>
#include <vector>

#include "bootstrap/channel.hpp"
#include "bootstrap/dial.hpp"
#include "bootstrap/heartbeat.hpp"
#include "bootstrap/star.hpp"

namespace rondo::bootstrap {

class Spoke : public Star, public std::enable_shared_from_this<Spoke> {
 public:
  Spoke(const StarSetup& setup, std::weak_ptr<StarOwner> owner);
  void start() override;
  void send(const Message& message) override;
  void ended(Rank rank) override;
  void close() noexcept override;

 private:
  // Finding rank 0: look up, try each address, pause, again.
  void look_up();
  void try_next();
  void try_again(const std::string& why);
  void dialled(Socket socket, const std::optional<Dial::Failure>& failure);
  void await(TimePoint deadline, void (Spoke::*then)());
  void unanswered();

  // Joining.
  void join(Socket socket);
  void verdict_missing();
  void received(const Message& message);
  void welcomed(const Message& message);
  void beat();
  void silent();
  void lost(const std::string& why);
  void fail(const Error& error);

  const StarSetup setup_;
  const std::weak_ptr<StarOwner> owner_;
  asio::steady_timer deadline_timer_, retry_timer_;
  Heartbeat heartbeat_;  // of rank 0
  std::vector<Address> addresses_;
  size_t next_address_ = 0;
  TimePoint resolved_at_{};
  uint64_t tag_;  // that a claim at the root carries
  std::shared_ptr<Dial> dial_;
  std::string last_failure_ = "nothing was tried";
  std::shared_ptr<Channel> channel_;
  DataListener listener_;
  Person root_;  // known from the welcome on
  enum class Phase : uint8_t { seeking, joining, running, alone, closed } phase_ = Phase::seeking;
};

}  // namespace rondo::bootstrap
