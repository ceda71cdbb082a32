#include "cli/watch.hpp"

#include <array>

namespace rondo::cli {

Watch::Watch() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void Watch::add(int fd, Source source, size_t index, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = uint64_t(source) << 32 | index;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Watch::remove(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Watch::wait(int timeout_ms, const std::function<void(Source, size_t)>& happened) {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), int(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const uint64_t which = events[size_t(i)].data.u64;
    happened(Source(which >> 32), which & 0xffffffff);
  }
}

}  // namespace rondo::cli
