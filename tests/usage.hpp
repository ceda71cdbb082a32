// What a process holds, to see that use leaves nothing behind.
#pragma once
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

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

/// The KiB after `label` in a file such as /proc/self/status.
inline size_t KiB_after(const char* label, const char* path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(label)) return std::stoul(line.substr(std::string(label).size()));
  return 0;
}

struct Usage {
  std::string open = what_is_open();
  size_t descriptors = count_of("/proc/self/fd"), threads = count_of("/proc/self/task"), mappings = 0;
  size_t virtual_KiB = KiB_after("VmSize:", "/proc/self/status");
  size_t resident_KiB = KiB_after("Rss:", "/proc/self/smaps_rollup");  // VmRSS is off by some per thread
  Usage() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) mappings++;
  }
};

}  // namespace rondo::test
