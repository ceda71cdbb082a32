// Goes on when ranks die. Start the ranks yourself (rondo run ends a job with its first failure), and kill some:
//   for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 RONDO_ROOT=unix:@try build/examples/03_shrink & done
//   sleep 2; kill -9 %1
#include <chrono>
#include <cstdio>
#include <rondo/rondo.hpp>
#include <thread>
#include <vector>

namespace {

constexpr int64_t steps = 50, samples = 1000;

int fail(const char* what, const rondo::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what, error.message.c_str());
  return 1;
}

// This rank's share of a step's samples, added up: the samples are divided anew whenever the ranks have become fewer.
std::vector<double> part_of(int64_t step, const rondo::Communicator& ranks) {
  double sum = 0;
  const rondo::Extent mine = ranks.shard(samples);
  for (uint64_t i = mine.first; i < mine.first + mine.count; i++) sum += double(step) + double(i);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it is hard work
  return {sum};
}

}  // namespace

int main() {
  auto communicator = rondo::Communicator::from_environment();
  if (!communicator) return fail("cannot join", communicator.error());
  double state = 0, before = 0;
  int64_t step = 0;
  while (step < steps) {
    std::vector<double> sums = part_of(step, *communicator);  // by rank() and world(), which change
    if (const auto done = communicator->all_reduce(std::span(sums))) {
      before = state;  // the others may still be a step behind
      state += sums[0];
      step++;
      continue;
    }
    auto rest = communicator->shrink();
    if (!rest) return fail("shrink", rest.error());
    communicator = std::move(rest);
    std::vector<int64_t> slowest{step};
    if (auto done = communicator->all_reduce(std::span(slowest), rondo::Reduction::min); !done) continue;
    if (slowest[0] < step) state = before, step--;
  }
  // Every sample of every step was counted once, whoever is left.
  const double expected = double(samples * (samples - 1) / 2 * steps + samples * steps * (steps - 1) / 2);
  std::printf("%u ranks are left; the sum is %.0f, and should be %.0f\n", communicator->world(), state,
              expected);
  return state == expected ? 0 : 1;
}
