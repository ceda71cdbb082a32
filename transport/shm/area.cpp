#include "transport/shm/area.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace rondo::shm {
namespace {

constexpr uint64_t magic = 0x4f444e4f52'6d6873;  // "shmRONDO" in memory
constexpr size_t page = 4096;

size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

Error cannot(const char* what) {
  return {ErrorCode::system, fmt::format("shared memory: cannot {}: {}", what, std::strerror(errno))};
}

}  // namespace

Area::Area(Descriptor memory, uint32_t world, const Sizes& sizes)
    : memory_(std::move(memory)),
      sizes_(sizes),
      slots_offset_(whole_pages(block_offset(world))),
      bytes_(slots_offset_ + size_t(world) * sizes.slots * stride()) {
  assert(sizes.slots <= most_slots && sizes.slot_bytes % 64 == 0);
}

Area::Area(Area&& other) noexcept
    : memory_(std::move(other.memory_)),
      sizes_(other.sizes_),
      slots_offset_(other.slots_offset_),
      bytes_(other.bytes_),
      base_(std::exchange(other.base_, nullptr)) {}

Area::~Area() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

Result<void> Area::map(int protection) {
  void* base = ::mmap(nullptr, bytes_, protection, MAP_SHARED | MAP_NORESERVE, memory_.get(), 0);
  if (base == MAP_FAILED) return cannot("map it");
  base_ = static_cast<std::byte*>(base);
  return {};
}

Result<Area> Area::make(uint64_t epoch, Rank rank, uint32_t world, const Sizes& sizes) {
  Area area(Descriptor(::memfd_create("rondo", MFD_CLOEXEC)), world, sizes);
  if (!area.memory_) return cannot("make it");
  if (::ftruncate(area.memory_.get(), off_t(area.bytes_)) != 0) return cannot("size it");
  if (auto mapped = area.map(PROT_READ | PROT_WRITE); !mapped) return mapped.error();
  new (area.base_) Header{magic, epoch, rank, world, {0}};
  for (Rank peer = 0; peer < world; peer++) new (area.base_ + block_offset(peer)) Block{};
  return area;
}

Result<Area> Area::open(Descriptor memory, uint64_t epoch, Rank rank, uint32_t world, const Sizes& sizes) {
  Area area(std::move(memory), world, sizes);
  struct stat status {};
  if (::fstat(area.memory_.get(), &status) != 0) return cannot("look at a peer's");
  if (size_t(status.st_size) != area.bytes_)
    return Error{
        ErrorCode::mismatch,
        fmt::format("shared memory: rank {}'s has {} bytes, not {}", rank, status.st_size, area.bytes_),
        rank};
  if (auto mapped = area.map(PROT_READ); !mapped) return mapped.error();
  const Header& header = area.header();
  if (header.magic != magic || header.epoch != epoch || header.rank != rank || header.world != world)
    return Error{ErrorCode::mismatch,
                 fmt::format("shared memory: what came is not rank {}'s of this job", rank), rank};
  return area;
}

}  // namespace rondo::shm
