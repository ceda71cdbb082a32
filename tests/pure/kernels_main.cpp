// The checks of the kernels, and with --bench their speed.
//   test_kernels [doctest options]
//   test_kernels --bench [WORD...]     only the lines in which every word occurs: --bench bf16 sum avx2
#include <cstring>
#include <string>
#include <vector>

#include "kernels_bench.hpp"
#include "tests/main.hpp"

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--bench") != 0) return rondo::tests::run_cases(argc, argv);
  rondo::tests::bench_kernels(std::vector<std::string>(argv + 2, argv + argc));
}
