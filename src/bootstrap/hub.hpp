// Rank 0's side of the control plane.
#pragma once
#include <asio/steady_timer.hpp>
#include <vector>

#include "bootstrap/channel.hpp"
#include "bootstrap/heartbeat.hpp"
#include "bootstrap/star.hpp"

namespace rondo::bootstrap {

class Hub : public Star, public std::enable_shared_from_this<Hub> {
 public:
  Hub(const StarSetup& setup, std::weak_ptr<StarOwner> owner);
  void start() override;
  void send(const Message& message) override;
  void ended(Rank rank) override;
  std::vector<uint64_t> silence_ms() const override;
  void close() noexcept override;

 private:
  struct Member {
    std::shared_ptr<Channel> channel;
    Join join;
    bool gone = false;  // left or lost
    bool told = false;  // why the job cannot begin
  };

  // Opening the doors.
  void listen_at(std::vector<Address> addresses, TimePoint give_up);
  void listen_by_name(const std::vector<Address>& resolved);
  void listen_for_file();
  void open(std::vector<Descriptor> listeners, uint64_t tag);

  // Gathering.
  void entered(const Claim& claim, Socket socket);
  void first_message(const std::shared_ptr<Channel>& channel, Rank rank, const Message& message);
  void welcome(const std::shared_ptr<Channel>& channel, Rank rank, const Message& message);
  void admit(const std::shared_ptr<Channel>& channel, Rank rank, const Join& join);
  void await_deadline();
  void out_of_time();
  std::optional<Error> unreachable() const;
  void exhausted(int error);
  void give_up(const Error& error);
  void turn_away(Channel& channel, Rank rank);
  bool all_told() const;
  std::optional<asio::ip::address> way_to_the_others() const;
  void complete();
  void fail(const Error& error);

  // Afterwards (hub_relay.cpp).
  void beat();
  void received(Rank from, const Message& message);
  void lost(Rank rank, const std::string& why);
  void silent(Rank rank);
  void tell_loss(Rank rank, const Error& error);
  void tell_others(const Message& message);
  void tell_owner(const Message& message);

  StarSetup setup_;
  const std::weak_ptr<StarOwner> owner_;
  asio::steady_timer deadline_timer_, retry_timer_;
  Heartbeat heartbeat_;  // of all ranks; its own is not looked at
  std::shared_ptr<Door> door_;
  std::vector<std::shared_ptr<Channel>> arriving_;  // proven, have not said `join` yet
  std::vector<Member> members_;                     // by rank; [0] is this process
  uint32_t joined_ = 1;
  Rank hurried_by_ = 0;      // the rank whose deadline comes first
  uint64_t file_nonce_ = 0;  // not 0: a root file exists
  enum class Phase : uint8_t { gathering, running, closed } phase_ = Phase::gathering;
  bool failure_told_ = false;
  std::optional<Error> cause_;  // set: whoever comes is told, then the job fails
};

}  // namespace rondo::bootstrap
