#include "bootstrap/state_door.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <cstdio>

#include "base/log.hpp"
#include "bootstrap/socket.hpp"

namespace rondo::bootstrap {
namespace {

// Whoever asks gets what fits into the socket's buffer at once, so that nobody can make this process wait.
constexpr int document_bytes = 1 << 20;

}  // namespace

uint64_t StateDoor::add(std::function<std::string()> tell) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(opened_, true)) open();
  tellers_.emplace(++next_, std::move(tell));
  return next_;
}

void StateDoor::remove(uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  tellers_.erase(id);
}

void StateDoor::answer_signal() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(answers_signal_, true)) return;
  asio::error_code refused;
  signal_.add(SIGUSR1, refused);
  if (!refused) asio::post(context_, [self = shared_from_this()] { self->await_signal(); });
}

void StateDoor::open() {
  auto listener = listen_on(unix_address(fmt::format("rondo-state-{}", ::getpid())));
  if (!listener)
    return log::line(log::Level::debug, -1, "nobody can ask for the state: {}", listener.error().message);
  asio::error_code refused;
  listener_.assign(listener->get(), refused);
  if (refused) return;
  listener->release();
  wait();
}

void StateDoor::wait() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [weak = weak_from_this()](const asio::error_code& error) {
                         const auto self = weak.lock();
                         if (error || !self) return;
                         self->serve();
                         self->wait();
                       });
}

void StateDoor::serve() {
  const Descriptor visitor = accept_from(listener_.native_handle());
  if (!visitor || !same_user(visitor.get())) return;
  ::setsockopt(visitor.get(), SOL_SOCKET, SO_SNDBUF, &document_bytes, sizeof document_bytes);
  const std::string text = document();
  [[maybe_unused]] const auto sent =
      ::send(visitor.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void StateDoor::await_signal() {
  signal_.async_wait([weak = weak_from_this()](const asio::error_code& error, int) {
    const auto self = weak.lock();
    if (error || !self) return;
    const std::string text = self->document();
    std::fwrite(text.data(), 1, text.size(), stderr);
    self->await_signal();
  });
}

std::string StateDoor::document() {
  const std::lock_guard lock(mutex_);
  std::string list;
  for (const auto& [id, tell] : tellers_) {
    if (!list.empty()) list += ", ";
    list += tell();
  }
  return fmt::format("{{\"rondo\": \"{}\", \"pid\": {}, \"communicators\": [{}]}}\n", RONDO_VERSION,
                     ::getpid(), list);
}

}  // namespace rondo::bootstrap
