// The memory that a peer hands over as its area, and the self-test of what it wrote there.
#include "areas.hpp"
#include "descriptors.hpp"
#include "transport/shm/sealed.hpp"
#include "transport/shm/self_test.hpp"

using namespace rondo;
using namespace rondo::shm;
using fuzz::require;

namespace {

// A header that is right but for what the input changes.
void check_header(fuzz::Input& input) {
  static const auto real = fuzz::area_of(1);
  const bool seal = input.value<uint8_t>() & 1;
  const size_t more = input.value<uint8_t>() & 1 ? 4096 : 0;
  const size_t bytes = size_t(look_at(real->descriptor()).bytes) + more;
  Descriptor memory = make_memory(bytes);
  std::array<std::byte, 36> head;  // up to the addresses
  std::memcpy(head.data(), &real->header(), head.size());
  const auto changes = input.take(head.size());
  for (size_t i = 0; i < changes.size(); ++i) head[i] ^= changes[i];
  require(::pwrite(memory.get(), head.data(), head.size(), 0) == ssize_t(head.size()), "a header");
  if (seal) require(seal_size(memory.get()), "a seal");
  const bool right = std::memcmp(head.data(), &real->header(), head.size()) == 0;
  const auto area = Area::open(std::move(memory), {fuzz::epoch, 1, 2}, fuzz::sizes);
  require(area.ok() == (right && seal && more == 0), "an area is taken if it is the right one, and sealed");
}

void check_self_test(fuzz::Input& input) {
  static const auto mine = fuzz::area_of(0), theirs = fuzz::area_of(1);
  mine->row(1).link.released.store(0);
  theirs->row(0).link.released.store(input.value<uint64_t>());
  fuzz::fill_slots(*theirs, 0, input);
  const auto block = input.take(fuzz::sizes.slot_bytes);
  std::copy(block.begin(), block.end(), theirs->block(0, 0));
  SelfTest test(*mine, *theirs);
  require(!test.hear(), "a pattern that is not there is not heard");
  const bool said = test.done().ok();
  require(said == (theirs->row(0).link.released.load() == SelfTest::used), "released is what it says");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  [[maybe_unused]] static const bool areas_made = [] {
    fuzz::Input none(nullptr, 0);
    check_header(none);
    check_self_test(none);
    return true;
  }();
  const int free_before = fuzz::lowest_free();
  fuzz::Input input(data, size);
  if (input.value<uint8_t>() & 1)
    check_header(input);
  else
    check_self_test(input);
  require(fuzz::lowest_free() == free_before, "every descriptor is closed");
  return 0;
}
