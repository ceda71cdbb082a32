#include "base/log.hpp"

#include <unistd.h>

#include <atomic>

namespace rondo::log {
namespace {

std::atomic<Level> threshold{Level::warn};

std::string_view name_of(Level level) {
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

void write(Level level, int rank, std::string_view text) noexcept {
  const std::string who = rank < 0 ? std::string() : fmt::format("[{}]", rank);
  const std::string line = fmt::format("rondo{} {}: {}\n", who, name_of(level), text);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace rondo::log
