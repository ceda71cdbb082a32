// The soak of failures: jobs of 8 ranks, one after another, in which ranks are killed at random while random
// operations run; the others shrink and go on. Everything that happens is checked. The last line says what was found.
//
//   soak [SECONDS] [--seed N] [--transport tcp|shm] [--first JOB]     60 s; the seed from the clock; by turns; from job 0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "command.hpp"
#include "soak_job.hpp"
#include "workers.hpp"

using namespace rondo::test;

namespace {

struct Settings {
  double seconds = 60;
  uint64_t seed = uint64_t(std::time(nullptr)) % 1'000'000, first = 0;
  std::string transport;
};

bool read(int count, char** words, Settings& settings) {
  for (int i = 1; i < count; i++) {
    const std::string word = words[i];
    const char* value = i + 1 < count ? words[i + 1] : nullptr;
    if (word == "--seed" && value != nullptr)
      settings.seed = std::strtoull(words[++i], nullptr, 10);
    else if (word == "--first" && value != nullptr)
      settings.first = std::strtoull(words[++i], nullptr, 10);
    else if (word == "--transport" && value != nullptr)
      settings.transport = words[++i];
    else if (const double seconds = std::atof(word.c_str()); seconds > 0)
      settings.seconds = seconds;
    else
      return false;
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  Settings settings;
  if (!read(count, words, settings)) {
    fmt::print(stderr, "usage: soak [SECONDS] [--seed N] [--transport tcp|shm] [--first JOB]\n");
    return 2;
  }
  fmt::print("soak: {} s, --seed {}\n", settings.seconds, settings.seed);
  std::fflush(stdout);
  const auto before = shared_places();
  const double end = seconds_now() + settings.seconds;
  SoakCounts counts;
  for (uint64_t number = settings.first; seconds_now() < end; number++)
    run_soak_job({settings.seed, number,
                  !settings.transport.empty() ? settings.transport
                  : number % 2 == 0           ? "tcp"
                                              : "shm"},
                 counts);
  for (const std::string& name : shared_places()) {
    if (std::ranges::find(before, name) != before.end()) continue;
    counts.leaks++;
    fmt::print("left in /dev/shm or /tmp: {}\n", name);
  }
  fmt::print("slowest: error {:.2f} s after its cause, shrink {:.2f} s\n", counts.slowest_error_s,
             counts.slowest_shrink_s);
  fmt::print(
      "soak: {} jobs, {} operations, {} kills, {} aborts, {} shrinks: {} wrong values, {} hangs, {} leaks, "
      "{} wrong or "
      "late errors\n",
      counts.jobs, counts.operations, counts.kills, counts.aborts, counts.shrinks, counts.wrong, counts.hangs,
      counts.leaks, counts.lies);
  return counts.good() ? 0 : 1;
}
