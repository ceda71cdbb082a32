// How many cores this process may use: what decides whether ranks have one each.
#pragma once
#include <sched.h>

namespace rondo {

inline int usable_cores() noexcept {
  cpu_set_t cpus;
  return ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

}  // namespace rondo
