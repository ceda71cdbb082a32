#include "engine/strays.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rondo::engine {

void Strays::beside(const Program& program, const Links& links, bool more) {
  if (std::exchange(program_, &program) == &program && !more) return;
  places_.clear();
  const auto is_read = [&](Rank peer, const Rx* rx) {
    return std::ranges::any_of(program.links, [&](const LinkQueue& link) {
      return !link.sends && link.peer == peer && links.of(link).rx == rx;
    });
  };
  for (Rank peer = 0; peer < world_; peer++) {
    if (peer == rank_) continue;
    for (Rx* rx : {fabric_.arrived(peer), fabric_.publication_of(peer)})
      if (rx != nullptr && !is_read(peer, rx)) places_.push_back({peer, rx});
  }
}

std::optional<Stray> Strays::find(uint64_t last) const {
  for (const Place& place : places_) {
    const View view = place.rx->peek(header_bytes, header_bytes);
    if (view.bytes == 0) continue;
    Stray stray{place.from, {}};
    std::memcpy(&stray.header, view.data, header_bytes);
    if (is_of_all(stray.header) && stray.header.sequence <= last) return stray;
  }
  return std::nullopt;
}

}  // namespace rondo::engine
