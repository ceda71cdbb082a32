// A rank for the tests of grow: joins the job of its environment, says so, and takes newcomers in; whatever came of that,
// adds up, exactly.
//   grower grow COUNT SECONDS [ROOT]   a rank of the old job; writes the file READY when it has joined
//   grower lose COUNT SECONDS [ROOT]   the same, after rank 0 has been killed and the others have shrunk
//   grower survive COUNT SECONDS ROOT  the same, but whenever a sum fails it shrinks
//   grower come [survive]              a newcomer
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "rondo/rondo.hpp"

using namespace rondo;

namespace {

// Rank r has r * 100 + i % 7, so the sum tells which ranks are in it.
bool adds_up(Communicator& comm) {
  std::vector<float> data(100'000);
  for (size_t i = 0; i < data.size(); i++) data[i] = float(comm.rank() * 100 + i % 7);
  if (auto done = comm.all_reduce(std::span(data)); !done) {
    fmt::print("the sum failed: {}\n", done.error().message);
    return false;
  }
  const float ranks = float(comm.world()), numbers = ranks * (ranks - 1) / 2 * 100;
  for (size_t i = 0; i < data.size(); i++)
    if (data[i] != numbers + ranks * float(i % 7)) return false;
  return true;
}

int work_with(Communicator& comm, const char* which) {
  const bool right = adds_up(comm);
  fmt::print("{}: rank {} of {}: {}\n", which, comm.rank(), comm.world(), right ? "right" : "wrong");
  return right ? 0 : 1;
}

// As often as it takes, up to the number of ranks.
int survive(Communicator comm) {
  for (uint32_t tries = comm.world(); tries > 0; tries--) {
    if (work_with(comm, "rest") == 0) return 0;
    auto rest = comm.shrink();
    if (!rest) return fmt::print("cannot shrink: {}\n", rest.error().message), 6;
    comm = std::move(*rest);
  }
  return 7;
}

}  // namespace

int main(int argc, char** argv) {
  ::setvbuf(stdout, nullptr, _IOLBF, 0);
  auto joined = Communicator::from_environment();
  if (!joined) return fmt::print("cannot join: {}\n", joined.error().message), 4;
  if (argc == 3) return survive(std::move(*joined));
  if (argc < 4) return work_with(*joined, "new");
  if (const char* path = std::getenv("READY"); path && joined->rank() == 0) std::ofstream(path) << "ready\n";
  if (std::string(argv[1]) == "lose") {
    if (joined->rank() == 0) ::raise(SIGKILL);
    if (adds_up(*joined)) return fmt::print("a dead rank has added its part\n"), 5;
    joined = joined->shrink();
    if (!joined) return fmt::print("cannot shrink: {}\n", joined.error().message), 6;
  }
  using Seconds = std::chrono::duration<double>;
  const auto start = std::chrono::steady_clock::now();
  CallOptions call;
  call.timeout = std::chrono::milliseconds(int(std::atof(argv[3]) * 1000));
  auto grown = joined->grow(uint32_t(std::atoi(argv[2])), argc > 4 ? argv[4] : "", call);
  const Seconds took = std::chrono::steady_clock::now() - start;
  if (!grown) fmt::print("{:.2f} {}: {}\n", took.count(), name_of(grown.error().code), grown.error().message);
  if (std::string(argv[1]) == "survive") return survive(std::move(grown ? *grown : *joined));
  const int with_old = work_with(*joined, "old");
  return grown ? work_with(*grown, "new") + with_old : with_old;
}
