// Streams through shared memory between two threads, of copied bytes and of references, built with one rule of
// transport/shm/link.cpp broken (RONDO_MUTANT) or with none (0): an ordering made too weak, which the thread
// sanitizer must report, or sources given back too early (3), which shows as wrong bytes: mutants.cpp.
#include <cstdio>
#include <memory>
#include <thread>

#include "lent.hpp"

using namespace rondo;

namespace {

constexpr int messages = 20'000;

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

// The owner of the memory writes it again as soon as it has it back.
void refer(Tx& tx, const Memory& memory) {
  const std::span bytes = memory.span<std::byte>();
  uint64_t position = tx.completed();
  for (int i = 0; i < messages; i++) {
    for (std::byte& byte : bytes) byte = std::byte(i);
    for (size_t sent = 0; sent < bytes.size(); std::this_thread::yield())
      sent += tx.send({bytes.data() + sent, bytes.size() - sent});
    position += bytes.size();
    for (tx.poll(); tx.completed() < position; tx.poll()) std::this_thread::yield();
  }
}

// Holds what it sees for a while before it looks.
int look(Rx& rx, size_t size) {
  int wrong = 0;
  for (int i = 0; i < messages; i++) {
    View view;
    while ((view = rx.peek(size, size)).bytes == 0) std::this_thread::yield();
    std::this_thread::yield();
    for (size_t at = 0; at < size; at++) wrong += view.data[at] != std::byte(i);
    rx.release(size);
  }
  return wrong;
}

}  // namespace

int main() {
  test::LentRanks ranks(2, {.slot_bytes = 256, .slots = 2}, 256);
  auto memory = allocate(256);
  if (ranks.fabrics.size() != 2 || !memory) return 2;
  Tx& tx = *ranks.fabrics[0]->open(1, 0)->tx;
  Rx& rx = *ranks.fabrics[1]->open(0, 0)->rx;
  // Lent before it is used, so that all of it is referred to.
  std::byte sink[256];
  tx.send({memory->data(), 256});
  tx.poll();
  rx.receive(sink);
  ranks.deliver();

  std::thread writer([&] { write(tx); });
  int wrong = read(rx);
  writer.join();
  std::thread owner([&] { refer(tx, *memory); });
  wrong += look(rx, 256);
  owner.join();
  std::printf("%d wrong bytes, %llu referred to\n", wrong,
              static_cast<unsigned long long>(ranks.fabrics[0]->bytes_referred()));
  if (ranks.fabrics[0]->bytes_referred() != uint64_t(messages) * 256) return 2;
  return wrong == 0 ? 0 : 1;
}
