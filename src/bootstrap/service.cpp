#include "bootstrap/service.hpp"

#include <pthread.h>
#include <signal.h>

#include <exception>
#include <mutex>

#include "base/log.hpp"

namespace rondo::bootstrap {
namespace {

// asio sends with MSG_NOSIGNAL and the thread blocks every signal, so that no handler of the program ever
// runs here and no write to a dead peer raises SIGPIPE. An exception can only be memory running out; it ends
// one handler, and the deadlines of whatever that handler was doing still hold.
void run(asio::io_context& context) noexcept {
  ::pthread_setname_np(::pthread_self(), "rondo");
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception& exception) {
      log::line(log::Level::error, -1, "a handler of the service thread failed: {}", exception.what());
    }
  }
}

// A thread inherits the mask of its maker: block everything, start it, and put the maker's mask back.
std::thread start_without_signals(std::shared_ptr<asio::io_context> context) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto restore = [](const sigset_t* mask) { ::pthread_sigmask(SIG_SETMASK, mask, nullptr); };
  const std::unique_ptr<const sigset_t, decltype(restore)> masked(&before, restore);
  return std::thread([context = std::move(context)] { run(*context); });
}

}  // namespace

std::shared_ptr<Service> Service::instance() {
  static std::mutex mutex;
  static std::weak_ptr<Service> current;
  const std::lock_guard lock(mutex);
  auto service = current.lock();
  if (!service) current = service = std::make_shared<Service>();
  return service;
}

Service::Service()
    : context_(std::make_shared<asio::io_context>(1)),
      keep_(asio::make_work_guard(*context_)),
      thread_(start_without_signals(context_)) {}

Service::~Service() {
  keep_.reset();
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

}  // namespace rondo::bootstrap
