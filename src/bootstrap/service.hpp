// The one service thread of the process: control plane, listeners, handshakes and timers of every
// communicator, asleep in one asio io_context.
#pragma once
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <memory>
#include <thread>

namespace rondo::bootstrap {

class Service {
 public:
  /// The process's service, started when there is none. Whoever holds it keeps the thread; the last holder
  /// joins it.
  static std::shared_ptr<Service> instance();

  Service();
  ~Service();
  Service(const Service&) = delete;

  asio::io_context& context() noexcept { return *context_; }

 private:
  // Shared with the thread, so that a handler which happens to be the last holder can let go.
  const std::shared_ptr<asio::io_context> context_;
  asio::executor_work_guard<asio::io_context::executor_type> keep_;
  std::thread thread_;
};

}  // namespace rondo::bootstrap
