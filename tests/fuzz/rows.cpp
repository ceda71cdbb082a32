// How far a reader says it has read, which it may say as it likes: a writer stays in its own area.
#include "areas.hpp"

using namespace rondo;
using namespace rondo::shm;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto mine = fuzz::area_of(0), theirs = fuzz::area_of(1);
  fuzz::Input input(data, size);
  Row& row = theirs->row(0);
  row.link.released.store(0);
  row.link.closed.store(0);
  mine->row(1).closed.store(0);
  ShmTx tx(*mine, 1, {{&row.link, &theirs->header(), [] {}}});
  const auto slots = std::as_bytes(mine->slots(1));
  const std::byte* const blocks = mine->block(1, 0);
  const std::byte source[6000] = {};
  for (int i = 0; i < 64 && !input.empty(); ++i) {
    const auto what = input.value<uint8_t>();
    if (what & 1) row.link.released.store(what & 2 ? input.value<uint8_t>() : input.value<uint64_t>());
    if (what == 255) row.link.closed.store(1);
    tx.poll();
    const size_t want = 1 + input.value<uint16_t>() % sizeof source;
    if (what & 4) {
      require(tx.send({source, want}) <= want, "no more is sent than was offered");
      continue;
    }
    const auto space = tx.acquire(want);
    if (space.empty()) continue;
    require(space.size() <= want, "no more is given than was asked for");
    const std::byte* const end = space.data() + space.size();
    require(
        (space.data() >= slots.data() && end <= slots.data() + slots.size()) ||
            (space.data() >= blocks && end <= blocks + size_t(fuzz::sizes.blocks) * fuzz::sizes.slot_bytes),
        "what is given lies in the own area");
    std::fill(space.begin(), space.end(), std::byte(what));
    tx.commit(space.size());
  }
  return 0;
}
