// Log lines to standard error: "rondo[rank] level: text". The level is RONDO_LOG (error warn info debug
// trace; warn).
#pragma once
#include <fmt/format.h>

#include <new>
#include <string_view>

namespace rondo::log {

enum class Level : uint8_t { error, warn, info, debug, trace };

/// Any thread. The level applies to the whole process.
void set_level(Level level) noexcept;
bool enabled(Level level) noexcept;
/// One write() of one line, so that lines of several threads and ranks stay whole.
void write(Level level, int rank, std::string_view text) noexcept;

template <class... Args>
void line(Level level, int rank, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!enabled(level)) return;
  try {
    write(level, rank, fmt::format(format, std::forward<Args>(args)...));
  } catch (const std::bad_alloc&) {
    write(level, rank, "there is no memory to say what");
  }
}

}  // namespace rondo::log
