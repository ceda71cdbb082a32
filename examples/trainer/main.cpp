// trainer: a byte-level GPT on the ranks of a job, its gradients averaged by rondo.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "gemm.hpp"
#include "options.hpp"
#include "rondo/rondo.hpp"
#include "train.hpp"

namespace {

std::atomic<int> caught{0};  // the signal that asks to stop
static_assert(std::atomic<int>::is_always_lock_free);

// The first Ctrl-C (which a launcher passes on as SIGTERM) asks all ranks to stop after the step under way,
// the second ends the process at once.
void stop_when_asked() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { caught.store(signal, std::memory_order_relaxed); };
  action.sa_flags = int(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int fail(const rondo::Error& error) {
  fmt::print(stderr, "trainer: {}\n", error.message);
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto parsed = trainer::parse(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<trainer::TrainOptions>(parsed);

  const auto choice = trainer::choose_gemm<float>();
  rondo::Options job;
  job.transport = options.transport;
  auto communicator = rondo::Communicator::from_environment(job);
  if (!communicator) return fail(communicator.error());
  stop_when_asked();
  if (choice.warning && communicator->rank() == 0) fmt::print(stderr, "WARNING: {}\n", *choice.warning);

  const auto outcome = trainer::train(*communicator, options, choice.gemm, caught);
  if (!outcome) return fail(outcome.error());
  switch (*outcome) {
    case trainer::Outcome::finished:
      return EXIT_SUCCESS;
    case trainer::Outcome::interrupted:
      return 128 + (caught.load() ? caught.load() : SIGINT);  // or another rank was asked
  }
} catch (const std::bad_alloc&) {
  fmt::print(stderr, "trainer: not enough memory for a model of this size\n");
  return EXIT_FAILURE;
} catch (const std::runtime_error& error) {
  fmt::print(stderr, "trainer: {}\n", error.what());
  return EXIT_FAILURE;
}
