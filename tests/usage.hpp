// What a process holds, to see that use leaves nothing behind.
#pragma once
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/sanitized.hpp"

namespace rondo::test {

/// What each descriptor of this process is.
inline std::string what_is_open() {
  std::string all;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    all += entry.path().filename().string() + " " +
           std::filesystem::read_symlink(entry.path(), gone).string() + "\n";
  return all;
}

inline size_t count_of(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

struct Usage {
  std::string open = what_is_open();
  size_t descriptors = count_of("/proc/self/fd"), threads = count_of("/proc/self/task"), mappings = 0;
  size_t resident_KiB = 0;
  Usage() {
    std::ifstream maps("/proc/self/maps"), status("/proc/self/status");
    for (std::string line; std::getline(maps, line);) mappings++;
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmRSS:")) resident_KiB = std::stoul(line.substr(6));
  }
};

// A sanitizer keeps freed memory back for a while, so resident memory says nothing there.
// The allocator's arenas come and go with the threads that use them.
inline constexpr size_t few_mappings = 40, some_KiB = sanitized ? 1 << 20 : 24 << 10;

}  // namespace rondo::test
