#include "kernels_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>

#include "kernels/isa.hpp"
#include "kernels_reference.hpp"

namespace rondo::tests {
namespace {

using kernels::Isa;
using kernels::Reducer;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// All that a kernel touches together: small enough for the first cache of most processors.
constexpr size_t working_set = 32 * 1024;

struct Memory {
  alignas(64) std::byte bytes[2 * working_set];
};

/// Seconds of one call: the best of several batches, each long enough for the clock.
double time_of(const std::function<void()>& call) {
  size_t calls = 1;
  for (;; calls *= 2) {
    const auto start = Clock::now();
    for (size_t i = 0; i < calls; ++i) call();
    if (Clock::now() - start > std::chrono::microseconds(100)) break;
  }
  double best = 1;
  for (int batch = 0; batch < 7; ++batch) {
    const auto start = Clock::now();
    for (size_t i = 0; i < calls; ++i) call();
    best = std::min(best, Seconds(Clock::now() - start).count() / double(calls));
  }
  return best;
}

/// Memory for a kernel's operands, filled with ones of the element type, so that nothing is subnormal.
class Bench {
 public:
  Bench(Isa isa, DataType type, Reduction reduction, const std::vector<std::string>& words, double copy_GBps)
      : kernels_(kernels::reducer(isa, type, reduction)),
        title_(fmt::format("{:8} {:7} {:12}", name_of(isa), name_of(type), name_of(reduction))),
        words_(words),
        copy_GBps_(copy_GBps),
        divisor_(reduction == Reduction::weighted_avg ? 6 : 1),
        memory_(new Memory) {}

  void run() {
    if (kernels_.finish_weighted != nullptr)
      run_weighted();
    else
      run_plain();
  }

 private:
  void run_plain() {
    const size_t t = kernels_.element_bytes, a = kernels_.accumulator_bytes;
    const auto combine = [this](Reducer::Combine call) {
      return [call, this](size_t n) { call(at(0), at(1), at(2), n); };
    };
    const auto finish = [this](Reducer::Finish call) {
      return [call, this](size_t n) { call(at(0), at(1), at(2), n, 2); };
    };
    line("narrow", {a, t, t}, combine(kernels_.narrow));
    line("partial", {a, a, t}, combine(kernels_.partial));
    line("partials", {a, a, a}, combine(kernels_.partials));
    line("finish_narrow", {t, t, t}, finish(kernels_.finish_narrow));
    line("finish_partial", {t, a, t}, finish(kernels_.finish_partial));
    line("finish_partials", {t, a, a}, finish(kernels_.finish_partials));
    line("finish", {t, t}, [this](size_t n) { kernels_.finish(at(0), at(1), n, 1); });
    for (const uint32_t world : {2u, 3u, 4u, 5u, 8u, 16u, 64u}) {
      line(fmt::format("finish_tree {}", world), std::vector<size_t>(world + 1, t),
           [&](size_t n) { kernels_.finish_tree(at(0), operands_.data() + 1, world, n); });
    }
  }

  void run_weighted() {
    const size_t t = kernels_.element_bytes;
    const std::vector<double> weights(64, 3);
    for (const uint32_t n : {1u, 2u, 3u, 4u, 5u, 8u, 16u, 64u}) {
      line(fmt::format("finish_weighted {}", n), std::vector<size_t>(n + 1, t), [&](size_t count) {
        kernels_.finish_weighted(at(0), operands_.data() + 1, weights.data(), n, divisor_, count);
      });
    }
  }

  std::byte* at(size_t operand) { return const_cast<std::byte*>(operands_[operand]); }

  /// `bytes` are those per element of target and sources.
  void line(const std::string& kernel, const std::vector<size_t>& bytes,
            const std::function<void(size_t)>& call) {
    const std::string name = fmt::format("{} {:18}", title_, kernel);
    const auto occurs = [&name](const std::string& word) {
      return (" " + name + " ").find(" " + word + " ") != std::string::npos;
    };
    if (!std::all_of(words_.begin(), words_.end(), occurs)) return;
    size_t each = 0;
    for (const size_t b : bytes) each += b;
    // Whole vectors; 65 operands of 8 bytes are then a little more than the working set.
    const size_t count = std::max<size_t>(64, working_set / each / 64 * 64);
    operands_.clear();
    std::byte* next = memory_->bytes;
    for (const size_t b : bytes) {
      std::memset(next, 0x38, count * b);
      operands_.push_back(next);
      next += count * b + 64;  // not all at the same place of a page
    }
    const double GBps = double(each * count) / time_of([&] { call(count); }) / 1e9;
    fmt::print("{} {:7.1f} {:6.1f}%\n", name, GBps, 100 * GBps / copy_GBps_);
  }

  const Reducer& kernels_;
  std::string title_;
  const std::vector<std::string>& words_;
  double copy_GBps_, divisor_;
  std::unique_ptr<Memory> memory_;
  std::vector<const std::byte*> operands_;
};

}  // namespace

void bench_kernels(const std::vector<std::string>& words) {
  const auto memory = std::make_unique<Memory>();
  const double seconds = time_of([&memory] {
    std::memcpy(memory->bytes, memory->bytes + working_set / 2, working_set / 2);
    asm volatile("" ::"r"(memory->bytes) : "memory");  // the copy is not left out
  });
  const double copy_GBps = working_set / seconds / 1e9;
  fmt::print(
      "# Bytes read and written per second, with {} KiB touched in all; a copy of as many: {:.1f} GB/s\n",
      working_set / 1024, copy_GBps);
  fmt::print("# {:6} {:7} {:12} {:18} {:>7} {:>7}\n", "isa", "type", "op", "kernel", "GB/s", "of copy");
  for (const DataType type : all_data_types) {
    for (const Reduction reduction : all_reductions) {
      if (!is_defined(type, reduction)) continue;
      for (const Isa isa : isas()) Bench(isa, type, reduction, words, copy_GBps).run();
    }
  }
}

}  // namespace rondo::tests
