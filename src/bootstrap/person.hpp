// Who this process is, and how a process is named in messages.
#pragma once
#include <string>

#include "base/clock.hpp"
#include "bootstrap/wire.hpp"

namespace rondo::bootstrap {

Person this_process(std::optional<uint32_t> node = std::nullopt);
/// "rank 2 (pid 1234 on node-1)"
std::string describe(Rank rank, const Person& person);
/// What is said of a rank whose heartbeat is missed.
std::string silence_text(Rank rank, const Person& person, milliseconds patience);
/// "3.0 s"
std::string in_seconds(uint64_t milliseconds);
/// "rank 2 of 4", "ranks 2 and 3 of 4", "ranks 1, 2 and 3 of 4"; long lists are cut.
std::string list_of(const std::vector<Rank>& ranks, uint32_t world);

}  // namespace rondo::bootstrap
