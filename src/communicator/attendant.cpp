#include "communicator/attendant.hpp"

#include <asio/post.hpp>
#include <new>
#include <utility>

namespace rondo {
namespace {

// How often to look where the kernel has no memory for one more watched descriptor.
constexpr milliseconds without_epoll{1};

}  // namespace

Attendant::Attendant(asio::io_context& context, std::shared_ptr<Operations> operations,
                     std::shared_ptr<engine::Waiter> waiter)
    : context_(context),
      operations_(std::move(operations)),
      waiter_(std::move(waiter)),
      descriptor_(context),
      timer_(context) {}

bool Attendant::call() noexcept {
  try {
    asio::post(context_, [self = shared_from_this()] { self->attend(); });
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Attendant::stop() {
  asio::post(context_, [self = shared_from_this()] { self->wake(); });
}

void Attendant::attend() {
  wake();
  const auto next = operations_->serve();
  switch (next.kind) {
    case Operations::Next::Kind::nothing:
      return;
    case Operations::Next::Kind::again:
      return again();
    case Operations::Next::Kind::sleep:
      return sleep(next.at);
  }
}

// Through the queue, so that everything else that is due has its turn.
void Attendant::again() {
  if (std::exchange(queued_, true)) return;
  asio::post(context_, [self = shared_from_this()] {
    self->queued_ = false;
    self->attend();
  });
}

// Adding the epoll to asio's own reports what is ready already, so nothing is missed between the last pass
// and the sleep.
void Attendant::sleep(TimePoint until) {
  const auto attend_unless = [self = shared_from_this()](const asio::error_code& error) {
    if (!error) self->attend();
  };
  asio::error_code refused;
  descriptor_.assign(waiter_->descriptor(), refused);
  if (!refused) descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, attend_unless);
  timer_.expires_at(refused ? std::min(until, deadline_after(without_epoll)) : until);
  timer_.async_wait(attend_unless);
}

void Attendant::wake() noexcept {
  if (descriptor_.is_open()) descriptor_.release();
  timer_.cancel();
}

}  // namespace rondo
