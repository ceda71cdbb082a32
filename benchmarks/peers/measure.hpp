// How every peer is measured, the same way as `rondo bench`: iterations back to back, in place on zeros; a time is the
// slowest rank's of an iteration, then the median over iterations.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace peers {

inline double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// "65536,1048576" -> bytes
inline std::vector<size_t> sizes_of(const std::string& list) {
  std::vector<size_t> sizes;
  std::stringstream text(list);
  for (std::string size; std::getline(text, size, ',');) sizes.push_back(std::stoull(size));
  return sizes;
}

/// `all_reduce(data, count)` sums floats in place; `max_of(times)` gives every rank the element-wise maximum.
template <class AllReduce, class Max>
void measure(int rank, int world, const std::vector<size_t>& sizes, AllReduce all_reduce, Max max_of) {
  for (const size_t bytes : sizes) {
    const size_t count = bytes / sizeof(float);
    std::vector<float> data(count, float(rank + 1));
    all_reduce(data.data(), count);
    const float expected = float(world) * float(world + 1) / 2;
    const bool right = std::all_of(data.begin(), data.end(), [&](float x) { return x == expected; });
    std::fill(data.begin(), data.end(), 0.f);
    std::vector<double> once(1);
    for (int warm = 0; warm < 5; warm++) {
      const double began = now_us();
      all_reduce(data.data(), count);
      once[0] = now_us() - began;
    }
    max_of(once);
    std::vector<double> times(size_t(std::clamp(2e5 / once[0], 4., 20000.)));
    double last = now_us();
    for (double& time : times) {
      all_reduce(data.data(), count);
      const double now = now_us();
      time = now - last;
      last = now;
    }
    max_of(times);
    std::sort(times.begin(), times.end());
    if (rank == 0) std::printf("%zu %.2f %s\n", bytes, times[times.size() / 2], right ? "right" : "WRONG");
    std::fflush(stdout);
  }
}

}  // namespace peers
