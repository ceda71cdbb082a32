// Random sequences of operations on several communicators, checked element by element against a model that
// needs no other process: every rank makes the same program from the seed, and knows everybody's data.
//
//   rondo run -n N -- random_programs SEED FIRST COUNT
//
// Prints the seed and the sequence that goes wrong, and exits 1.
#include <fmt/format.h>

#include <cstdlib>

#include "random_operations.hpp"

using namespace rondo;
using namespace rondo::test;

int main(int, char** arguments) {
  const uint64_t seed = std::strtoull(arguments[1], nullptr, 10),
                 first = std::strtoull(arguments[2], nullptr, 10),
                 count = std::strtoull(arguments[3], nullptr, 10);
  auto comm = Communicator::from_environment();
  if (!comm) return fmt::print("{}\n", comm.error().message), 1;
  auto twin = comm->duplicate();
  auto half = comm->split(comm->rank() % 2);
  if (!twin || !half) return fmt::print("no communicators\n"), 1;
  std::vector<Communicator*> comms{&*comm, &*twin, &**half};
  for (uint64_t k = first; k < first + count; k++) {
    const Outcome outcome = run_sequence(comms, seed * 1'000'003 + k, small_count);
    if (outcome.right()) continue;
    fmt::print("seed {} sequence {}: rank {}: {}: {}\n", seed, k, comm->rank(), outcome.what,
               outcome.error ? outcome.error->message : fmt::format("{} wrong", outcome.wrong));
    return 1;
  }
  if (comm->rank() == 0) fmt::print("seed {}: sequences {} to {} right\n", seed, first, first + count - 1);
  return 0;
}
