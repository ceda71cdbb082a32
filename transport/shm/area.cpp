#include "transport/shm/area.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/limits.hpp"
#include "transport/shm/barrier.hpp"
#include "transport/shm/sealed.hpp"

namespace rondo::shm {
namespace {

constexpr uint64_t magic = 0x4f444e4f52'6d6873;  // "shmRONDO" in memory
constexpr size_t most_slot_bytes = 64 << 10, least_slot_bytes = 4 << 10, area_bytes = 4 << 20;

Error cannot(const char* what) {
  const int cause = errno;
  return {ErrorCode::system,
          fmt::format("cannot {} shared memory: {}{}", what, std::strerror(cause), limit_behind(cause))};
}

}  // namespace

Sizes Sizes::for_world(uint32_t world) noexcept {
  Sizes sizes;
  // What two ranks, with a core for each, have under way should stay in their caches (docs/benchmarks.md).
  if (world == 2) sizes.blocks = 3;
  const size_t share = std::bit_floor(std::max<size_t>(1, area_bytes / (size_t(world) * sizes.blocks)));
  sizes.slot_bytes = uint32_t(std::clamp(share, least_slot_bytes, most_slot_bytes));
  return sizes;
}

size_t Area::bytes_for(uint32_t world) noexcept {
  return Area(Descriptor(), {0, 0, world}, Sizes::for_world(world)).bytes_;
}

Area::Area(Descriptor memory, const Place& place, const Sizes& sizes)
    : memory_(std::move(memory)),
      place_(place),
      sizes_(sizes),
      slots_offset_(whole_pages(row_offset(place.world) + most_lent * sizeof(uint64_t))),
      blocks_offset_(whole_pages(slots_offset_ + size_t(place.world) * sizes.slots * sizeof(Slot))),
      bytes_(blocks_offset_ + size_t(place.world) * sizes.blocks * sizes.slot_bytes) {
  assert(sizes.slot_bytes % 64 == 0);
}

Area::Area(Area&& other) noexcept
    : memory_(std::move(other.memory_)),
      place_(other.place_),
      sizes_(other.sizes_),
      slots_offset_(other.slots_offset_),
      blocks_offset_(other.blocks_offset_),
      bytes_(other.bytes_),
      witness_(std::move(other.witness_)),
      base_(std::exchange(other.base_, nullptr)) {}

Area::~Area() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

Result<void> Area::map(int protection) {
  void* base = ::mmap(nullptr, bytes_, protection, MAP_SHARED | MAP_NORESERVE, memory_.get(), 0);
  if (base == MAP_FAILED) return cannot("map");
  base_ = static_cast<std::byte*>(base);
  return {};
}

Result<Area> Area::make(const Place& place, const Sizes& sizes, const Addresses& at) {
  Area area(Descriptor(), place, sizes);
  area.memory_ = make_memory(area.bytes_);
  if (!area.memory_) return cannot("make");
  if (auto mapped = area.map(PROT_READ | PROT_WRITE); !mapped) return mapped.error();
  if (!seal_size(area.memory_.get())) return cannot("seal");
  // All atomics begin as the zeros of a fresh memfd.
  Header& header = area.header();
  header.magic = magic;
  header.epoch = place.epoch;
  header.rank = place.rank;
  header.world = place.world;
  header.slot_bytes = sizes.slot_bytes;
  header.slots = sizes.slots;
  header.blocks = sizes.blocks;
  header.at = at;
  header.barriers = take_part_in_barriers();
  area.witness_ = std::make_unique<Witness>();
  header.testimony = area.witness_->testimony();
  return area;
}

bool Area::is_as_expected() const noexcept {
  const Header& is = header();
  return is.magic == magic && is.epoch == place_.epoch && is.rank == place_.rank &&
         is.world == place_.world && is.slot_bytes == sizes_.slot_bytes && is.slots == sizes_.slots &&
         is.blocks == sizes_.blocks;
}

Result<Area> Area::open(Descriptor memory, const Place& place, const Sizes& sizes) {
  Area area(std::move(memory), place, sizes);
  const auto [sealed, bytes] = look_at(area.memory_.get());
  if (bytes < 0) return cannot("look at a peer's");
  if (!sealed || size_t(bytes) != area.bytes_)
    return Error{ErrorCode::mismatch,
                 fmt::format("rank {}'s shared memory has {} bytes and {} sealed; expected are {}, sealed",
                             place.rank, bytes, sealed ? "is" : "is not", area.bytes_),
                 place.rank};
  if (auto mapped = area.map(PROT_READ); !mapped) return mapped.error();
  area.close_descriptor();
  if (!area.is_as_expected())
    return Error{ErrorCode::mismatch,
                 fmt::format("the shared memory that came is not rank {}'s of this job", place.rank),
                 place.rank};
  return area;
}

}  // namespace rondo::shm
