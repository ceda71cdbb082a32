// Letters in a rank's mailbox, from lenders and from strangers, with all kinds of memory.
#include "areas.hpp"
#include "base/passing.hpp"
#include "descriptors.hpp"
#include "transport/shm/sealed.hpp"

using namespace rondo;
using namespace rondo::shm;
using fuzz::require;

namespace {

constexpr size_t page = 4096;

struct World {
  std::shared_ptr<Area> mine, theirs = fuzz::area_of(1);
  std::pair<Descriptor, Descriptor> mail = fuzz::datagram_pair();
  Descriptor sealed = make_memory(2 * page), open = make_memory(2 * page);

  World() {
    Addresses at;
    at.key.fill(std::byte(0x5a));
    mine = std::make_shared<Area>(*Area::make({fuzz::epoch, 0, 2}, fuzz::sizes, at));
    require(seal_size(sealed.get()), "a seal");
  }

  void write(fuzz::Input& input) const {
    const auto flags = input.value<uint8_t>();
    auto offer = input.value<Offer>();
    if (flags & 1) offer.key = mine->header().at.key;
    if (flags & 2) offer.from = 1;
    if (flags & 4) offer.index %= 8;
    if (flags & 8) offer.bytes = 2 * page;
    if (flags & 16 && offer.index < most_lent) theirs->lent(uint16_t(offer.index)).store(offer.number);
    const int memory = flags >> 6 == 0 ? -1 : flags >> 6 == 1 ? open.get() : sealed.get();
    const size_t bytes = flags & 32 ? input.value<uint8_t>() % (sizeof offer + 1) : sizeof offer;
    send_message(mail.first.get(), std::as_bytes(std::span(&offer, 1)).first(bytes), memory);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const World world;
  const int free_before = fuzz::lowest_free();
  fuzz::Input input(data, size);
  for (uint16_t index = 0; index < most_lent; ++index) world.theirs->lent(index).store(0);
  {
    Borrower borrower(world.mine);
    borrower.add(world.theirs);
    for (int round = 0; round < 4 && !input.empty(); ++round) {
      for (int i = 0; i < 3; ++i) world.write(input);
      borrower.receive(world.mail.second.get());
      for (unsigned index = 0; index < 300; ++index) {
        require(borrower.find(0, uint16_t(index)) == nullptr, "only who lends has lent");
        const auto borrowed = borrower.find(1, uint16_t(index));
        if (!borrowed) continue;
        require(borrowed->bytes() == 2 * page, "all of a sealed memory is mapped");
        require(borrowed->base()[2 * page - 1] == std::byte(), "and can be read");
      }
    }
  }
  require(fuzz::lowest_free() == free_before, "every descriptor that came is closed");
  return 0;
}
