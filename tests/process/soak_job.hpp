// One job of the soak: eight ranks, of which six are killed one after another, and a judge of all that they say.
#pragma once
#include <cstdint>
#include <string>

namespace rondo::test {

struct SoakCounts {
  uint64_t jobs = 0, operations = 0, kills = 0, aborts = 0, shrinks = 0;
  uint64_t wrong = 0, hangs = 0, leaks = 0;
  uint64_t lies = 0;  // errors that name the wrong rank or come late, ranks left out that live, crashes
  double slowest_error_s = 0, slowest_shrink_s = 0;

  bool good() const { return wrong + hangs + leaks + lies == 0; }
};

struct SoakJob {
  uint64_t seed, number;
  std::string transport;
};

/// Adds to the counts, and prints whatever is wrong.
void run_soak_job(const SoakJob& job, SoakCounts& counts);

}  // namespace rondo::test
