#include "base/fault.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace rondo {
namespace {

constexpr std::string_view grammar =
    "KIND@rank=R,operation=K[,peer=P][,after=BYTES][,for=MS][,header], several separated by ';'; KIND is "
    "drop, stall, close, corrupt or kill; K counts this rank's calls from 1; for is of a stall, header of a "
    "corrupt";
constexpr uint64_t longest_stall_ms = 1'000'000'000;
constexpr uint64_t header_end = 16;

constexpr std::array kinds{Fault::Kind::drop, Fault::Kind::stall, Fault::Kind::close, Fault::Kind::corrupt,
                           Fault::Kind::kill};

Error wrong(std::string_view what) {
  return {ErrorCode::invalid_argument, fmt::format("{}; the grammar is {}", what, grammar)};
}

// The text before the first `separator`, which is taken off `rest` with it.
std::string_view next(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const auto piece = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  return piece;
}

Result<uint64_t> number(std::string_view key, std::string_view value, uint64_t least, uint64_t most) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && end == value.data() + value.size() && number >= least && number <= most)
    return number;
  return wrong(fmt::format("{}={} must be a whole number from {} to {}", key, value, least, most));
}

// What the items of one fault say, and whether they have said it already.
struct Items {
  std::optional<uint64_t> rank, operation, peer, after, lasts;
  bool header = false;
};

Result<void> read_item(Items& items, std::string_view item, uint32_t world) {
  if (item == "header") {
    if (std::exchange(items.header, true)) return wrong("header is there twice");
    return {};
  }
  std::string_view value = item;
  const std::string_view key = next(value, '=');
  constexpr auto any = std::numeric_limits<uint64_t>::max();
  struct Known {
    std::string_view key;
    std::optional<uint64_t>& value;
    uint64_t least, most;
  };
  const Known known[] = {{"rank", items.rank, 0, world - 1},
                         {"operation", items.operation, 1, any},
                         {"peer", items.peer, 0, world - 1},
                         {"after", items.after, 0, any},
                         {"for", items.lasts, 1, longest_stall_ms}};
  for (const Known& each : known) {
    if (key != each.key) continue;
    if (each.value) return wrong(fmt::format("{} is there twice", key));
    const auto read = number(key, value, each.least, each.most);
    if (!read) return read.error();
    each.value = *read;
    return {};
  }
  return wrong(fmt::format("\"{}\" is none of the items of a fault", item));
}

Result<Fault> read_fault(std::string_view text, uint32_t world) {
  std::string_view rest = text;
  const std::string_view name = next(rest, '@');
  Fault fault;
  bool known = false;
  for (const Fault::Kind kind : kinds)
    if (name == name_of(kind)) {
      fault.kind = kind;
      known = true;
    }
  if (!known) return wrong(fmt::format("\"{}\" is no kind of fault", name));
  Items items;
  while (!rest.empty())
    if (auto read = read_item(items, next(rest, ','), world); !read) return read.error();
  if (!items.rank || !items.operation)
    return wrong(fmt::format("\"{}\" does not say which {}", text, items.rank ? "operation" : "rank"));
  if (items.peer == items.rank) return wrong("rank and peer are the same");
  if (items.lasts && fault.kind != Fault::Kind::stall)
    return wrong(fmt::format("a {} has no duration", name));
  if (items.header && fault.kind != Fault::Kind::corrupt)
    return wrong(fmt::format("header is not for a {}", name));
  if (items.header && items.after.value_or(0) >= header_end)
    return wrong(fmt::format("a header has {} bytes, numbered from 0", header_end));
  fault.rank = Rank(*items.rank);
  fault.operation = *items.operation;
  if (items.peer) fault.peer = Rank(*items.peer);
  fault.after = items.after;
  if (items.lasts) fault.lasts = milliseconds(int64_t(*items.lasts));
  fault.header = items.header;
  return fault;
}

}  // namespace

std::string_view name_of(Fault::Kind kind) noexcept {
  switch (kind) {
    case Fault::Kind::drop:
      return "drop";
    case Fault::Kind::stall:
      return "stall";
    case Fault::Kind::close:
      return "close";
    case Fault::Kind::corrupt:
      return "corrupt";
    case Fault::Kind::kill:
      return "kill";
  }
  return "?";
}

Result<std::vector<Fault>> parse_faults(std::string_view text, uint32_t world) {
  std::vector<Fault> faults;
  while (!text.empty()) {
    auto fault = read_fault(next(text, ';'), world);
    if (!fault) return fault.error();
    faults.push_back(*fault);
  }
  return faults;
}

}  // namespace rondo
