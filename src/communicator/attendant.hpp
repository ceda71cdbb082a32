// Lets the service thread drive a communicator's operations when nobody else does, without its ever being
// blocked: it takes short turns while something moves, and then sleeps on the driver's waiter as it does on
// its sockets and timers.
//
//   call() --> serve() --again--> serve() ... --sleep--> [ the waiter's epoll | timer ] --> serve() ...
//                                             --nothing--> until the next call()
#pragma once
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <memory>

#include "communicator/operations.hpp"
#include "engine/waiter.hpp"

namespace rondo {

class Attendant : public std::enable_shared_from_this<Attendant> {
 public:
  Attendant(asio::io_context& context, std::shared_ptr<Operations> operations,
            std::shared_ptr<engine::Waiter> waiter);
  /// Any thread. False: there is no memory left for it.
  bool call() noexcept;
  /// Any thread, once the operations are closed: lets go of the waiter soon.
  void stop();

 private:
  // The service thread.
  void attend();
  void again();
  void sleep(TimePoint until);
  void wake() noexcept;

  asio::io_context& context_;
  const std::shared_ptr<Operations> operations_;
  const std::shared_ptr<engine::Waiter> waiter_;  // outlives descriptor_'s use of its epoll
  asio::posix::stream_descriptor descriptor_;     // holds the epoll only during a sleep
  asio::steady_timer timer_;
  bool queued_ = false;  // again() has queued a turn
};

}  // namespace rondo
