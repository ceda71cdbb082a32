// What the supervisor sleeps on.
#pragma once
#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/descriptor.hpp"

namespace rondo::cli {

enum class Source : uint32_t { lifeline, signal, end_of_rank, pipe, outlet };

/// Descriptors, each of a source and with a number of its owner's choice.
class Watch {
 public:
  Watch();
  void add(int fd, Source source, size_t index, uint32_t events = EPOLLIN);
  void remove(int fd);
  /// Until something happens, or `timeout_ms` (-1: for ever). Calls `happened` for each, in the order in which they did.
  void wait(int timeout_ms, const std::function<void(Source, size_t)>& happened);

 private:
  const Descriptor epoll_;
};

}  // namespace rondo::cli
