#include "cli/bench/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "cli/bench/data.hpp"

namespace rondo::bench {
namespace {

constexpr double target_us = 2e5;  // of the timed part of one point
constexpr uint64_t most_iterations = 100'000, fewest_iterations = 4;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Bench::Bench(Communicator& communicator, const BenchOptions& options)
    : communicator_(communicator),
      options_(options),
      inject_(options.inject_wrong && communicator.rank() == 0) {
  const auto sizes = options.sizes();
  const uint64_t most = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  input_.reset(new std::byte[most + 1]());
  output_.reset(new std::byte[most + 1]());
}

// Where the operation's two buffers lie: each is the whole vector or this rank's shard of it, and in place
// the shard lies at its place in the whole.
Result<void> Bench::once() {
  const auto& o = options_;
  const uint64_t shift = communicator_.shard(count_).first * size_of(o.type);
  switch (o.operation) {
    case Operation::all_reduce:
      return communicator_.all_reduce(whole(), output_.get(), count_, o.type, o.reduction);
    case Operation::reduce_scatter:
      return communicator_.reduce_scatter(whole(), output_.get() + (in_place_ ? shift : 0), count_, o.type,
                                          o.reduction);
    case Operation::all_gather:
      return communicator_.all_gather(whole() + (in_place_ ? shift : 0), output_.get(), count_, o.type);
    case Operation::broadcast:
      return communicator_.broadcast(output_.get(), count_, o.type, o.root);
    case Operation::barrier:
      return communicator_.barrier();
  }
  return {};
}

// Runs once on known data; returns how many elements are wrong on all ranks.
Result<uint64_t> Bench::checked(uint32_t round) {
  const auto& o = options_;
  const Extent all{0, count_}, own = communicator_.shard(count_);
  const bool shard_in = o.operation == Operation::all_gather,
             shard_out = o.operation == Operation::reduce_scatter;
  const uint64_t shift = own.first * size_of(o.type);
  std::byte* source = o.operation == Operation::broadcast ? output_.get() : whole();
  fill(source + (shard_in && in_place_ ? shift : 0), shard_in ? own : all, o.type, o.reduction,
       communicator_.rank(), round);
  const uint64_t before = communicator_.counters().payload_bytes_sent;
  if (auto outcome = once(); !outcome) return outcome.error();
  payload_ = communicator_.counters().payload_bytes_sent - before;
  algorithm_ = communicator_.last_algorithm();
  std::byte* result = output_.get() + (shard_out && in_place_ ? shift : 0);
  const Extent& extent = shard_out ? own : all;
  if (inject_ && extent.count > 0) {
    result[0] ^= std::byte{1};
    inject_ = false;
  }
  int64_t sums[] = {int64_t(count_wrong(result, extent, o, count_, communicator_.world(), round)),
                    int64_t(payload_)};
  if (auto outcome = communicator_.all_reduce(std::span(sums)); !outcome) return outcome.error();
  payload_ = uint64_t(sums[1]);
  return uint64_t(sums[0]);
}

// Rank 0's choice, from what the warm-up showed.
Result<uint64_t> Bench::iterations() {
  double slowest = 0;
  uint64_t runs = std::max<uint64_t>(options_.warmup, 1);
  for (int64_t left = int64_t(runs); left > 0;) {
    const double began = now_us();
    for (; left > 0; left--)
      if (auto outcome = once(); !outcome) return outcome.error();
    slowest = (now_us() - began) / double(runs);
    // Too short to tell: as many again, four times over. Rank 0 decides.
    left = options_.iterations == 0 && slowest * double(runs) < target_us / 20 ? int64_t(4 * runs) : 0;
    int64_t agreed[] = {left};
    if (auto outcome = communicator_.broadcast(std::span(agreed)); !outcome) return outcome.error();
    left = agreed[0];
    if (left > 0) runs = uint64_t(left);
  }
  int64_t wanted[] = {int64_t(
      std::clamp(target_us / std::max(slowest, 0.01), double(fewest_iterations), double(most_iterations)))};
  if (options_.iterations > 0) wanted[0] = int64_t(options_.iterations);
  if (auto outcome = communicator_.broadcast(std::span(wanted)); !outcome) return outcome.error();
  return uint64_t(wanted[0]);
}

Result<std::vector<double>> Bench::timed() {
  // Zeros: in place, anything else would grow.
  std::memset(input_.get(), 0, count_ * size_of(options_.type));
  std::memset(output_.get(), 0, count_ * size_of(options_.type));
  auto runs = iterations();
  if (!runs) return runs.error();
  std::vector<double> times(*runs);
  if (auto outcome = communicator_.barrier(); !outcome) return outcome.error();
  double last = now_us();
  for (double& time : times) {
    if (auto outcome = once(); !outcome) return outcome.error();
    const double now = now_us();
    time = now - last;
    last = now;
  }
  if (auto outcome = communicator_.all_reduce(std::span(times), Reduction::max); !outcome)
    return outcome.error();
  std::sort(times.begin(), times.end());
  return times;
}

Result<Row> Bench::point(uint64_t bytes, bool in_place) {
  const uint64_t width = size_of(options_.type);
  count_ = bytes / width;
  in_place_ = in_place;
  auto wrong_before = checked(1);
  if (!wrong_before) return wrong_before.error();
  const uint64_t payload = payload_;
  auto times = timed();
  if (!times) return times.error();
  auto wrong_after = checked(2);
  if (!wrong_after) return wrong_after.error();
  const size_t n = times->size();
  const auto at = [&](size_t i) { return (*times)[i]; };
  return Row{.bytes = count_ * width,
             .count = count_,
             .algorithm = algorithm_,
             .in_place = in_place,
             .iterations = n,
             .median_us = n % 2 == 1 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) / 2,
             .p99_us = at(std::min(n - 1, size_t(std::ceil(0.99 * double(n))) - 1)),
             .min_us = at(0),
             .wrong = *wrong_before + *wrong_after,
             .payload_bytes_all_ranks = payload};
}

}  // namespace rondo::bench
