#include "base/port_range.hpp"

#include <charconv>
#include <optional>

namespace rondo {
namespace {

std::optional<uint16_t> port(std::string_view text) {
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

}  // namespace

Result<PortRange> parse_ports(std::string_view text) {
  if (text.empty()) return PortRange{};
  const size_t dash = text.find('-');
  const auto first = port(text.substr(0, dash));
  const auto last = dash == text.npos ? first : port(text.substr(dash + 1));
  if (!first || !last || *first > *last)
    return Error{ErrorCode::invalid_argument, "must be a port or a range of ports such as 45000-45010"};
  return PortRange{*first, *last};
}

}  // namespace rondo
