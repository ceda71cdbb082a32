// A stream through shared memory between two threads, built with one ordering of transport/shm/link.cpp made
// too weak (RONDO_MUTANT) or with none (0). The thread sanitizer must tell them apart: tests/loopback/mutants.cpp.
#include <cstdio>
#include <memory>
#include <thread>

#include "transport/shm/fabric.hpp"

using namespace rondo;

namespace {

constexpr int messages = 20'000;

std::unique_ptr<shm::ShmFabric> fabric(const std::shared_ptr<shm::Area>& mine,
                                       const std::shared_ptr<shm::Area>& theirs) {
  auto result = std::make_unique<shm::ShmFabric>(mine);
  result->adopt(theirs, [] {});
  return result;
}

// Small and large pieces in turn.
size_t size_of_message(int i) { return i % 2 == 0 ? 16 : 128; }

void write(Tx& tx) {
  for (int i = 0; i < messages; i++) {
    const size_t size = size_of_message(i);
    std::span<std::byte> space;
    while ((space = tx.acquire(size)).empty()) std::this_thread::yield();
    for (std::byte& byte : space) byte = std::byte(i);
    tx.commit(size);
    tx.poll();
  }
}

int read(Rx& rx) {
  int wrong = 0;
  for (int i = 0; i < messages; i++) {
    const size_t size = size_of_message(i);
    View view;
    while ((view = rx.peek(size, size)).bytes == 0) std::this_thread::yield();
    for (size_t at = 0; at < size; at++) wrong += view.data[at] != std::byte(i);
    rx.release(size);
  }
  return wrong;
}

}  // namespace

int main() {
  std::shared_ptr<shm::Area> areas[2];
  for (const Rank rank : {0u, 1u}) {
    auto area = shm::Area::make({1, rank, 2}, {.slot_bytes = 256, .slots = 2});
    if (!area) return 1;
    areas[rank] = std::make_shared<shm::Area>(std::move(*area));
  }
  const auto zero = fabric(areas[0], areas[1]), one = fabric(areas[1], areas[0]);
  std::thread writer([&] { write(*zero->open(1, 0)->tx); });
  const int wrong = read(*one->open(0, 0)->rx);
  writer.join();
  std::printf("%d wrong bytes\n", wrong);
  return 0;
}
