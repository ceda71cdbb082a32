#include "transport/shm/self_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"

namespace rondo::shm {
namespace {

// A small piece and a large one.
constexpr size_t head = 24, total = 1024;
using Pattern = std::array<std::byte, total>;

// Different for each job, direction and byte.
Pattern pattern(uint64_t epoch, Rank from, Rank to) {
  Pattern bytes;
  uint64_t state = epoch ^ (uint64_t(from) << 32 | to);
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    byte = std::byte(state >> 56);
  }
  return bytes;
}

}  // namespace

void try_to_pull(const Area& mine, const Area& theirs) noexcept {
  const Testimony testimony = theirs.header().testimony;
  std::byte some;
  const Rank peer = theirs.place().rank;
  if (Puller(testimony).pull({&some, 1}, testimony.address)) {
    mine.row(peer).pulls.store(1, std::memory_order_seq_cst);
    return log::line(log::Level::debug, int(mine.place().rank), "can read the private memory of rank {}",
                     peer);
  }
  log::line(log::Level::info, int(mine.place().rank),
            "cannot read the private memory of rank {} ({}); its data go through shared memory", peer,
            std::strerror(errno));
}

SelfTest::SelfTest(const Area& mine, const Area& theirs)
    : mine_(mine),
      theirs_(theirs),
      tx_(mine, theirs.place().rank, {{&theirs.row(mine.place().rank).link, &theirs.header(), [] {}}}),
      rx_(mine, mine.row(theirs.place().rank).link, {&theirs, mine.place().rank, [] {}}) {}

Error SelfTest::broken(const char* what) const {
  return {
      ErrorCode::system,
      fmt::format("the self-test of the memory shared with rank {} failed: {}", theirs_.place().rank, what),
      theirs_.place().rank};
}

Result<void> SelfTest::say() noexcept {
  const Pattern bytes = pattern(mine_.place().epoch, mine_.place().rank, theirs_.place().rank);
  if (tx_.send({bytes.data(), head}) + tx_.send({bytes.data() + head, total - head}) != total)
    return broken("its slots are not free");
  tx_.poll();
  return {};
}

Result<void> SelfTest::hear() noexcept {
  const Pattern expected = pattern(mine_.place().epoch, theirs_.place().rank, mine_.place().rank);
  Pattern got{};
  if (rx_.receive(got) != total) return broken("what the peer wrote does not show");
  if (!std::ranges::equal(got, expected)) return broken("what the peer wrote shows as something else");
  if (theirs_.place().world == 2) try_to_pull(mine_, theirs_);
  return {};
}

Result<void> SelfTest::done() const noexcept {
  const uint64_t released = theirs_.row(mine_.place().rank).link.released.load(std::memory_order_seq_cst);
  if (released != used) return broken("what the peer released does not show");
  return {};
}

}  // namespace rondo::shm
