// Two ranks' areas of shared memory in one process.
#pragma once
#include <memory>

#include "input.hpp"
#include "transport/shm/lending.hpp"
#include "transport/shm/link.hpp"

namespace rondo::fuzz {

inline constexpr uint64_t epoch = 7;
inline constexpr shm::Sizes sizes{4096, 4, 3};

inline std::shared_ptr<shm::Area> area_of(Rank rank) {
  auto area = shm::Area::make({epoch, rank, 2}, sizes);
  require(area.ok(), "an area");
  return std::make_shared<shm::Area>(std::move(*area));
}

/// Makes what `reader` finds from `area`: slots, half of them published in turn, and how far their writer is.
inline void fill_slots(const shm::Area& area, Rank row, Input& input) {
  uint64_t number = 0;
  for (shm::Slot& slot : area.slots(row)) {
    ++number;
    const auto flags = input.value<uint8_t>();
    slot.published.store(flags & 1 ? number : input.value<uint64_t>());
    slot.small = flags & 2 ? uint16_t(flags >> 2) : input.value<uint16_t>();
    slot.region = flags & 64 ? 0 : input.value<uint16_t>();
    slot.large = flags & 128 ? input.value<uint16_t>() : input.value<uint32_t>();
    if (slot.region != 0) {
      const uint64_t offset = flags & 4 ? input.value<uint16_t>() : input.value<uint64_t>();
      std::memcpy(slot.offset_data(), &offset, sizeof offset);
    }
  }
  area.row(row).closed.store(input.value<uint8_t>() == 1);
}

}  // namespace rondo::fuzz
