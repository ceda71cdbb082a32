#include "base/log.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace rondo::log {
namespace {

std::atomic<Level> threshold{Level::warn};

const char* name_of(Level level) {
  switch (level) {
    case Level::error:
      return "error";
    case Level::warn:
      return "warning";
    case Level::info:
      return "info";
    case Level::debug:
      return "debug";
    case Level::trace:
      return "trace";
  }
  return "?";
}

}  // namespace

void set_level(Level level) noexcept { threshold.store(level, std::memory_order_relaxed); }
bool enabled(Level level) noexcept { return level <= threshold.load(std::memory_order_relaxed); }

// Without allocating: memory running out is one of the things it has to tell.
void write(Level level, int rank, std::string_view text) noexcept {
  char head[48];
  const char* const name = name_of(level);
  const int bytes = rank < 0 ? std::snprintf(head, sizeof head, "rondo %s: ", name)
                             : std::snprintf(head, sizeof head, "rondo[%d] %s: ", rank, name);
  char end = '\n';
  const iovec parts[] = {
      {head, size_t(bytes)}, {const_cast<char*>(text.data()), text.size()}, {&end, sizeof end}};
  [[maybe_unused]] const auto written = ::writev(STDERR_FILENO, parts, 3);
}

}  // namespace rondo::log
