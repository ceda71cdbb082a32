// The one service thread of the process: control plane, listeners, handshakes and timers of every
// communicator, asleep in one asio io_context.
#pragma once
#include <array>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "bootstrap/state_door.hpp"
#include "rondo/result.hpp"

namespace rondo::bootstrap {

/// The longest a user's thread waits for the service thread, which never waits for anybody.
inline constexpr milliseconds service_patience{900};
/// Beyond a deadline that the service thread itself keeps.
inline constexpr milliseconds service_grace{2000};

/// For what cannot say that it failed: whoever waits for it has a deadline.
template <class Call>
void unless_without_memory(Call call) noexcept {
  try {
    call();
  } catch (const std::bad_alloc&) {
    log::line(log::Level::error, -1, "memory has run out");
  }
}

/// Has the service thread of `context` make the call, and waits until it has, at most service_patience. On that
/// thread: here and now.
template <class Call>
void call_on(asio::io_context& context, Call call) noexcept {
  unless_without_memory([&] {
    const auto done = std::make_shared<std::promise<void>>();
    asio::dispatch(context, [done, call = std::move(call)] {
      call();
      done->set_value();
    });
    done->get_future().wait_for(service_patience);
  });
}

class Service {
 public:
  /// The process's service, started when there is none. Whoever holds it keeps the thread; the last holder
  /// joins it.
  static std::shared_ptr<Service> instance();
  /// Any thread. An error on a service thread, which would wait for itself: for what waits for a handler.
  static std::optional<Error> cannot_be_waited_for(std::string_view caller);

  Service();
  ~Service();
  Service(const Service&) = delete;

  asio::io_context& context() noexcept { return core_->context; }
  StateDoor& state_door() noexcept { return *state_door_; }

  /// Any thread. How many handlers an exception has ended, and why the last one: for whoever waits for what one
  /// of them was to do.
  uint64_t handlers_lost() const noexcept { return core_->lost.load(std::memory_order_relaxed); }
  std::string last_loss() const;
  /// Any thread. Runs what must let no exception out, as if it were a handler.
  template <class Call>
  void guard(Call call) noexcept {
    core_->guard(call);
  }

 private:
  // Shared with the thread, so that a handler which happens to be the last holder can let go.
  struct Core {
    // Errors: std::system_error, without descriptors.
    Core();
    asio::io_context context{1};
    std::atomic<uint64_t> lost{0};
    std::mutex mutex;
    std::array<char, 128> why{};  // the last was lost; guarded by the mutex
    template <class Call>
    bool guard(Call& call) noexcept {  // whether it returned
      try {
        call();
        return true;
      } catch (const std::exception& exception) {
        lose(exception);
        return false;
      }
    }
    void lose(const std::exception& exception) noexcept;
    void run() noexcept;
  };
  static std::thread start(std::shared_ptr<Core> core);

  const std::shared_ptr<Core> core_;
  asio::executor_work_guard<asio::io_context::executor_type> keep_;
  std::shared_ptr<StateDoor> state_door_;
  std::thread thread_;  // last: whatever could throw after it would leave it running
};

}  // namespace rondo::bootstrap
