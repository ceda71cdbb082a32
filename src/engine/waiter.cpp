#include "engine/waiter.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/cores.hpp"

namespace rondo::engine {

using std::chrono::microseconds;

namespace {

constexpr uint32_t without_clock = 16;

// Linux shares out the processor by session first, where autogroup is on (sched(7)). A process alone in its
// session yields to itself; torchrun starts its ranks that way.
bool yields_to_nobody() {
  std::ifstream file("/proc/sys/kernel/sched_autogroup_enabled");
  int enabled = 0;
  return file >> enabled && enabled != 0 && ::getsid(0) == ::getpid();
}

}  // namespace

Waiter::Budget Waiter::budget_for(uint32_t ranks_here) {
  const bool crowded = int64_t(ranks_here) > usable_cores();
  return {.spin = microseconds(crowded ? 0 : 2),
          .yield = microseconds(crowded && yields_to_nobody() ? 50 : 600)};
}

Result<std::unique_ptr<Waiter>> Waiter::make(Budget budget) {
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC)), bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{.events = EPOLLIN, .data = {.fd = bell.get()}};
  if (!epoll || !bell || ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, bell.get(), &event) != 0)
    return Error{ErrorCode::system,
                 fmt::format("cannot make an epoll and an eventfd: {}", std::strerror(errno))};
  return std::unique_ptr<Waiter>(new Waiter(budget, std::move(epoll), std::move(bell)));
}

Result<void> Waiter::watch(int fd) {
  if (fd < 0) return {};
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
    return Error{ErrorCode::system, fmt::format("cannot watch a link: {}", std::strerror(errno))};
  return {};
}

Waiter::Next Waiter::idle(TimePoint deadline) noexcept {
  // Reading the clock takes as long as half a pass: a quick answer should not wait for it.
  if (idle_ < without_clock && budget_.spin.count() > 0) {
    idle_++;
    return Next::again;
  }
  const TimePoint now = Clock::now();
  if (now >= deadline) return Next::late;
  if (idle_ <= without_clock) {
    idle_ = without_clock + 1;
    since_ = now;
  }
  const auto waited = now - since_;
  if (waited < budget_.spin) return Next::again;
  if (waited >= budget_.spin + budget_.yield) return Next::sleep;
  ::sched_yield();
  return Next::again;
}

void Waiter::sleep(TimePoint deadline) noexcept {
  std::array<epoll_event, 16> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), int(events.size()), milliseconds_until(deadline));
  for (int i = 0; i < n; i++) {
    uint64_t rings;
    if (events[size_t(i)].data.fd == bell_.get()) [[maybe_unused]]
      const auto drained = ::read(bell_.get(), &rings, sizeof rings);
  }
}

void Waiter::ring() noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell_.get(), &one, sizeof one);
}

}  // namespace rondo::engine
