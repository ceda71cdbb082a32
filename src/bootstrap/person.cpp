#include "bootstrap/person.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>

#include "bootstrap/process.hpp"

namespace rondo::bootstrap {
namespace {

constexpr size_t most_listed = 16;

// The kernel's id of this boot of this machine, the same in every container on it.
BootId read_boot_id() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  BootId id{};
  size_t digits = 0;
  for (const char c : text) {
    uint8_t nibble = 0;
    if (std::from_chars(&c, &c + 1, nibble, 16).ec != std::errc() || digits == 2 * id.size()) continue;
    id[digits / 2] |= std::byte(digits % 2 == 0 ? nibble << 4 : nibble);
    ++digits;
  }
  return id;
}

}  // namespace

Person this_process(std::optional<uint32_t> node) {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  return {this_one(),
          std::string(name.data()).substr(0, longest_host),
          read_boot_id(),
          {},
          node.value_or(own_node)};
}

std::string describe(Rank rank, const Person& person) {
  return fmt::format("rank {} (pid {} on {})", rank, person.process.pid, person.host);
}

std::string silence_text(Rank rank, const Person& person, milliseconds patience) {
  return fmt::format(
      "{} has not been heard of for {}: its process is stopped, or its machine or network is gone "
      "(RONDO_HEARTBEAT says how long to wait)",
      describe(rank, person), in_seconds(uint64_t(patience.count())));
}

std::string in_seconds(uint64_t milliseconds) { return fmt::format("{:.1f} s", double(milliseconds) / 1000); }

std::string list_of(const std::vector<Rank>& ranks, uint32_t world) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const size_t shown = std::min(ranks.size(), most_listed);
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == ranks.size();
    text += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", ranks[i]);
  }
  if (shown < ranks.size()) text += fmt::format(" and {} more", ranks.size() - shown);
  return text + fmt::format(" of {}", world);
}

}  // namespace rondo::bootstrap
