// A rank that does the same again and again, and tells what it holds after a warm-up and at the end:
//   held DESCRIPTORS THREADS MAPPINGS VIRTUAL_KIB RESIDENT_KIB
//   NUMBER WHAT                        each descriptor
//
//   steady_rank cycles COUNT           joins, uses all and leaves
//   steady_rank operations COUNT       small ones on one communicator
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "rondo/rondo.hpp"
#include "tests/usage.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::milliseconds;

namespace {

[[noreturn]] void stop(const std::string& why) {
  fmt::print("wrong: {}\n", why);
  std::fflush(stdout);
  std::_Exit(4);
}
void require(const Result<void>& done) {
  if (!done) stop(done.error().message);
}
template <class T>
T value_of(Result<T> made) {
  if (!made) stop(made.error().message);
  return std::move(*made);
}

void tell_usage() {
  // A thread that has been joined is in /proc for a moment more.
  std::this_thread::sleep_for(milliseconds(50));
  ::malloc_trim(0);
  const Usage usage;
  fmt::print("held {} {} {} {} {}\n{}", usage.descriptors, usage.threads, usage.mappings, usage.virtual_KiB,
             usage.resident_KiB, usage.open);
}

// Joined, used with memory of every kind, split, every third time left with work pending and aborted, and destroyed.
void cycle(size_t n) {
  auto comm = value_of(Communicator::from_environment());
  auto memory = value_of(rondo::allocate(size_t(256) << 10));
  std::vector<int32_t> data(1000, 1);
  std::ranges::fill(memory.span<int32_t>(), 1);
  require(comm.all_reduce(memory.span<int32_t>()));
  require(comm.all_reduce(std::span(data)));
  auto part = std::move(*value_of(comm.split(0)));
  auto work = value_of(part.async_all_reduce(std::span(data)));
  const bool given_up = n % 3 == 0;
  if (!given_up) require(work.wait());
  if (given_up && comm.rank() == 1) part.abort();
}

void cycles(size_t count) {
  for (size_t n = 1; n <= 30; n++) cycle(n);
  tell_usage();
  for (size_t n = 1; n <= count; n++) cycle(n);
  tell_usage();
}

// 100 operations, half of them pending together.
void round(Communicator& comm, std::vector<std::vector<int32_t>>& data) {
  std::vector<Work> works;
  for (auto& vector : data) {
    vector.assign(8, 1);
    works.push_back(value_of(comm.async_all_reduce(std::span(vector))));
  }
  for (Work& work : works) require(work.wait());
  for (auto& vector : data) require(comm.all_reduce(std::span(vector)));
  if (std::ranges::count(data, std::vector<int32_t>(8, 4)) != std::ptrdiff_t(data.size())) stop("wrong sums");
}

void operations(size_t count) {
  auto comm = value_of(Communicator::from_environment());
  std::vector<std::vector<int32_t>> data(50, std::vector<int32_t>(8));
  const auto many = [&](size_t rounds) {
    for (size_t i = 0; i < rounds; i++) round(comm, data);
    require(comm.barrier());
    tell_usage();
    require(comm.barrier());
  };
  many(200);  // also each page that shared memory has for messages has been touched
  many(count / 100);
}

}  // namespace

int main(int, char** argv) {
  // Memory that is freed goes back to the system, and no thread has a heap of its own: what is resident is held.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 17);
  ::mallopt(M_ARENA_MAX, 1);
  const size_t count = std::strtoull(argv[2], nullptr, 10);
  if (argv[1] == std::string_view("cycles"))
    cycles(count);
  else
    operations(count);
  fmt::print("done\n");
}
