// Slots of shared memory that a peer has written as it liked: what they show lies in its area, or in what it has
// lent, and nowhere else.
#include "areas.hpp"
#include "base/passing.hpp"
#include "descriptors.hpp"
#include "transport/shm/sealed.hpp"

using namespace rondo;
using namespace rondo::shm;
using fuzz::require;

namespace {

constexpr size_t region_bytes = 8192;

struct World {
  std::shared_ptr<Area> mine = fuzz::area_of(0), theirs = fuzz::area_of(1);
  std::shared_ptr<Borrower> borrower = std::make_shared<Borrower>(mine);

  // Rank 1 lends one region.
  World() {
    borrower->add(theirs);
    theirs->lent(0).store(1);
    const auto region = Region::make(region_bytes);
    const auto [sender, mailbox] = fuzz::datagram_pair();
    const Offer offer{mine->header().at.key, 1, (*region)->bytes(), 1, 0};
    require(send_message(sender.get(), std::as_bytes(std::span(&offer, 1)), (*region)->descriptor()),
            "a letter");
    borrower->receive(mailbox.get());
    require(borrower->find(1, 0) != nullptr, "a region");
  }
};

bool inside(const View& view, const void* base, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(base);
  return view.data >= from && view.data + view.bytes <= from + bytes;
}

void check(const View& view, const World& world) {
  if (view.bytes == 0) return;
  const auto slots = std::as_bytes(world.theirs->slots(0));
  const auto borrowed = world.borrower->find(1, 0);
  require(inside(view, slots.data(), slots.size()) ||
              inside(view, world.theirs->block(0, 0), size_t(fuzz::sizes.blocks) * fuzz::sizes.slot_bytes) ||
              inside(view, borrowed->base(), borrowed->bytes()),
          "a view lies in what the peer has given");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  fuzz::Input input(data, size);
  fuzz::fill_slots(*world.theirs, 0, input);
  Reading& reading = world.mine->row(1).link;
  reading.released.store(0);
  reading.closed.store(0);
  ShmRx rx(*world.mine, reading, {world.theirs.get(), 0, [] {}, world.borrower});
  std::byte target[512];
  for (int i = 0; i < 32; ++i) {
    const auto what = input.value<uint8_t>();
    rx.poll();
    if (what & 1) {
      const size_t want = input.value<uint16_t>() % (sizeof target + 1);
      require(rx.receive(std::span(target).first(want)) <= want, "no more than there is room for");
      continue;
    }
    const size_t max = input.value<uint16_t>(), quantum = size_t(1) << (what >> 1 & 3);
    const View view = rx.peek(max, quantum);
    require(view.bytes <= max && view.bytes % quantum == 0, "a view is as long as was asked for");
    check(view, world);
    rx.release(std::min<size_t>(view.bytes, input.value<uint16_t>()));
  }
  return 0;
}
