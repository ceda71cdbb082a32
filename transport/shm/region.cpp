#include "transport/shm/region.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "rondo/memory.hpp"
#include "transport/shm/sealed.hpp"

namespace rondo::shm {
namespace {

Error cannot_allocate(size_t bytes, int reason) {
  std::string text =
      fmt::format("cannot allocate {} bytes of shareable memory: {}", bytes, std::strerror(reason));
  if (reason == EMFILE) text += "; each allocation holds a descriptor (ulimit -n)";
  if (const auto limit = size_limit(); limit && reason == EFBIG)
    text += fmt::format("; no file may be larger than {} bytes (ulimit -f)", *limit);
  return {ErrorCode::system, std::move(text)};
}

uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The first region that lies behind the address.
auto behind(const std::vector<std::shared_ptr<Region>>& regions, uintptr_t address) {
  return std::upper_bound(regions.begin(), regions.end(), address, [](uintptr_t value, const auto& region) {
    return value < address_of(region->base());
  });
}

}  // namespace

Result<std::shared_ptr<Region>> Region::make(size_t bytes) {
  if (bytes > SIZE_MAX / 4) return cannot_allocate(bytes, ENOMEM);
  const size_t whole = whole_pages(bytes);
  Descriptor memory = make_memory(whole);
  if (!memory) return cannot_allocate(bytes, errno);
  void* base = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory.get(), 0);
  if (base == MAP_FAILED) return cannot_allocate(bytes, errno);
  std::shared_ptr<Region> region(new Region(std::move(memory), static_cast<std::byte*>(base), whole));
  if (!seal_size(region->descriptor())) return cannot_allocate(bytes, errno);
  return region;
}

Region::~Region() { ::munmap(base_, bytes_); }

bool Region::add(std::weak_ptr<Lending> lending) {
  const std::lock_guard lock(mutex_);
  if (freed_) return false;
  std::erase_if(lendings_, [](const auto& known) { return known.expired(); });
  lendings_.push_back(std::move(lending));
  return true;
}

void Region::tell_freed() noexcept {
  std::vector<std::weak_ptr<Lending>> lendings;
  {
    const std::lock_guard lock(mutex_);
    freed_ = true;
    lendings.swap(lendings_);
  }
  for (const auto& weak : lendings)
    if (const auto lending = weak.lock()) lending->freed(*this);
}

Regions& Regions::of_process() {
  static Regions& regions = *new Regions;
  return regions;
}

Result<std::byte*> Regions::make(size_t bytes) {
  auto region = Region::make(bytes);
  if (!region) return region.error();
  std::byte* const base = (*region)->base();
  const std::lock_guard lock(mutex_);
  regions_.insert(behind(regions_, address_of(base)), std::move(*region));
  generation_.fetch_add(1, std::memory_order_release);
  return base;
}

void Regions::free(const std::byte* base) noexcept {
  std::shared_ptr<Region> region;
  {
    const std::lock_guard lock(mutex_);
    const auto next = behind(regions_, address_of(base));
    region = std::move(*std::prev(next));
    regions_.erase(std::prev(next));
    generation_.fetch_add(1, std::memory_order_release);
  }
  region->tell_freed();
}

Regions::Place Regions::find(const void* address) const noexcept {
  const std::shared_lock lock(mutex_);
  const uintptr_t at = address_of(address);
  Place place{nullptr, 0, UINTPTR_MAX, generation_.load(std::memory_order_relaxed)};
  const auto next = behind(regions_, at);
  if (next != regions_.end()) place.to = address_of((*next)->base());
  if (next == regions_.begin()) return place;
  const auto& before = *std::prev(next);
  const uintptr_t begin = address_of(before->base()), end = begin + before->bytes();
  if (at < end) return {before, begin, end, place.generation};
  place.from = end;
  return place;
}

std::shared_ptr<Region> Regions::same_as(int memory) const noexcept {
  const std::shared_lock lock(mutex_);
  const auto found = std::ranges::find_if(
      regions_, [&](const auto& region) { return same_memory(region->descriptor(), memory); });
  return found == regions_.end() ? nullptr : *found;
}

}  // namespace rondo::shm

namespace rondo {

Result<Memory> Memory::allocate(size_t bytes) {
  if (bytes == 0) return Memory();
  try {
    auto base = shm::Regions::of_process().make(bytes);
    if (!base) return base.error();
    return Memory(*base, bytes);
  } catch (const std::bad_alloc&) {
    return shm::cannot_allocate(bytes, ENOMEM);
  }
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  if (data_ != nullptr) shm::Regions::of_process().free(data_);
}

}  // namespace rondo
