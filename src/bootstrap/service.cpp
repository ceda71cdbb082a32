#include "bootstrap/service.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <signal.h>

#include <asio/steady_timer.hpp>
#include <cstdio>
#include <new>

#include "base/log.hpp"

namespace rondo::bootstrap {
// A timer makes asio open its epoll and so on here, where it can be told that it cannot, and not in a handler.
Service::Core::Core() { const asio::steady_timer first(context); }

std::string Service::last_loss() const {
  const std::lock_guard lock(core_->mutex);
  return core_->why.data();
}

// An exception can only be memory, or descriptors, running out. It ends one handler; the deadlines of whatever
// that handler was doing still hold, and a join ends at once (Membership::join).
void Service::Core::lose(const std::exception& exception) noexcept {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr;
  const char* const what = memory ? "memory has run out" : exception.what();
  log::line(log::Level::error, -1, "a handler of the service thread failed: {}", what);
  const std::lock_guard lock(mutex);
  std::snprintf(why.data(), why.size(), "%s", what);
  lost.fetch_add(1, std::memory_order_relaxed);
}

namespace {
thread_local bool serves = false;
}

std::optional<Error> Service::cannot_be_waited_for(std::string_view caller) {
  if (!serves) return std::nullopt;
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("{}: not in a callback on the library's own thread (Work::on_end), which has a part in it: "
                  "let the callback wake a thread of yours",
                  caller)};
}

// asio sends with MSG_NOSIGNAL and the thread blocks every signal, so that no handler of the program ever
// runs here and no write to a dead peer raises SIGPIPE.
void Service::Core::run() noexcept {
  serves = true;
  ::pthread_setname_np(::pthread_self(), "rondo");
  const auto run_handlers = [this] { context.run(); };
  while (!guard(run_handlers)) {
  }
}

// A thread inherits the mask of its maker: block everything, start it, and put the maker's mask back.
std::thread Service::start(std::shared_ptr<Core> core) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto restore = [](const sigset_t* mask) { ::pthread_sigmask(SIG_SETMASK, mask, nullptr); };
  const std::unique_ptr<const sigset_t, decltype(restore)> masked(&before, restore);
  return std::thread([core = std::move(core)] { core->run(); });
}

std::shared_ptr<Service> Service::instance() {
  static std::mutex mutex;
  static std::weak_ptr<Service> current;
  const std::lock_guard lock(mutex);
  auto service = current.lock();
  if (!service) current = service = std::make_shared<Service>();
  return service;
}

// libcrypto is not to clean up after itself at the end of the process: it would before static objects are destroyed,
// and a communicator that is one of them may be connecting still.
Service::Service()
    : core_(std::make_shared<Core>()),
      keep_(asio::make_work_guard(core_->context)),
      state_door_(std::make_shared<StateDoor>(core_->context)),
      thread_(start(core_)) {
  ::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

Service::~Service() {
  state_door_.reset();
  keep_.reset();
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

}  // namespace rondo::bootstrap
