// A rank for the tests of shrink: adds up 64 MiB again and again until that fails, goes on with whoever is left, and
// says how long that took and whether the sums are right.
//   survivor HOW VICTIM...   VICTIM: a rank that stops in the middle of a sum, "kill" by SIGKILL, "stop" by SIGSTOP;
//                            a second one is killed while it shrinks
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "rondo/rondo.hpp"

using namespace rondo;
using std::chrono::milliseconds;

namespace {

constexpr size_t elements = 16u << 20;

void end_after(milliseconds delay, int signal) {
  std::thread([=] {
    std::this_thread::sleep_for(delay);
    ::kill(::getpid(), signal);
  }).detach();
}

// Whole numbers that a float holds exactly; each rank's differ.
float value(Rank original, size_t i) { return float(original * 100 + i % 100); }

bool adds_up(Communicator& comm, const std::vector<Rank>& originals, Rank own) {
  std::vector<float> data(elements);
  for (size_t i = 0; i < elements; i++) data[i] = value(own, i);
  if (auto done = comm.all_reduce(std::span(data)); !done) {
    std::printf("the sum failed: %s\n", done.error().message.c_str());
    return false;
  }
  for (size_t i = 0; i < elements; i++) {
    float sum = 0;
    for (const Rank original : originals) sum += value(original, i);
    if (data[i] != sum) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  ::setvbuf(stdout, nullptr, _IOLBF, 0);
  auto joined = Communicator::from_environment();
  if (!joined) return std::fprintf(stderr, "%s\n", joined.error().message.c_str()), 4;
  const Rank own = joined->rank();
  const int signal = std::strcmp(argv[1], "stop") == 0 ? SIGSTOP : SIGKILL;
  const bool first = argc > 2 && own == Rank(std::atoi(argv[2])),
             second = argc > 3 && own == Rank(std::atoi(argv[3]));
  std::vector<float> data(elements, 0.f);
  if (!joined->barrier()) return 5;
  if (first) end_after(milliseconds(150), signal);
  while (true)
    if (auto done = joined->all_reduce(std::span(data)); !done) break;
  std::printf("failed\n");

  if (second) end_after(milliseconds(3), SIGKILL);
  const auto began = std::chrono::steady_clock::now();
  auto made = joined->shrink({milliseconds(10'000)});
  const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
  if (!made) return std::printf("no successor: %s\n", made.error().message.c_str()), 6;
  const auto originals = made->parent_ranks();
  joined = std::move(made);  // the old one is destroyed
  std::printf("shrunk in %d ms, over %s to %s\n", int(took.count()), std::string(joined->transport()).c_str(),
              fmt::format("{}", fmt::join(originals, " ")).c_str());
  if (second) ::pause();
  const bool right = adds_up(*joined, originals, own);
  for (int i = 0; i < 3 && signal == SIGSTOP; i++) {  // a long way from what the one that wakes knows
    auto next = joined->shrink({milliseconds(10'000)});
    if (!next) return std::printf("not again: %s\n", next.error().message.c_str()), 8;
    joined = std::move(next);
  }
  std::printf("%s\n", right ? "right" : "wrong");
  // For those that come late.
  if (signal == SIGSTOP) ::pause();
  return right ? 0 : 7;
}
