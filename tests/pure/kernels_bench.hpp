#pragma once
#include <string>
#include <vector>

namespace rondo::tests {

/// Prints the speed of every kernel whose line contains all of `words`.
void bench_kernels(const std::vector<std::string>& words);

}  // namespace rondo::tests
