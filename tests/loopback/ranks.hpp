// Ranks as threads through the public face: each has a communicator of its own, over real sockets.
#pragma once
#include <dirent.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "rondo/communicator.hpp"

namespace rondo::test {

/// One element per rank of a new job.
inline std::vector<Options> options_of_ranks(uint32_t world) {
  static std::atomic<int> job{0};
  Options options;
  options.world = world;
  options.root = fmt::format("unix:@rondo-test-{}-{}", getpid(), ++job);
  options.secret = "secret of the tests";
  options.init_timeout = std::chrono::milliseconds(10'000);
  options.timeout = std::chrono::milliseconds(10'000);
  std::vector<Options> all(world, options);
  for (Rank rank = 0; rank < world; rank++) all[rank].rank = rank;
  return all;
}

/// Runs body(communicator) on every rank, each in a thread of its own.
inline void on_ranks(const std::vector<Options>& options, const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (const Options& own : options) {
    threads.emplace_back([&] {
      auto communicator = Communicator::create(own);
      CHECK_MESSAGE(communicator.ok(), (communicator ? "" : communicator.error().message));
      if (communicator) body(*communicator);
    });
  }
  for (auto& thread : threads) thread.join();
}
/// Over the transport that a job chooses by itself: shm.
inline void on_ranks(uint32_t world, const std::function<void(Communicator&)>& body) {
  on_ranks(options_of_ranks(world), body);
}
/// Once over each transport; `body` must not keep anything from one to the next.
inline void on_ranks_over_all(uint32_t world, const std::function<void(Communicator&)>& body) {
  for (const char* transport : {"tcp", "shm"}) {
    CAPTURE(transport);
    auto options = options_of_ranks(world);
    for (Options& own : options) own.transport = transport;
    on_ranks(options, [&](Communicator& communicator) {
      CHECK(communicator.transport() == (world == 1 ? "local" : transport));
      body(communicator);
    });
  }
}

inline size_t entries(const char* folder) {
  size_t count = 0;
  DIR* directory = opendir(folder);
  while (readdir(directory) != nullptr) count++;
  closedir(directory);
  return count;
}

inline std::chrono::milliseconds since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
}

}  // namespace rondo::test
