#include "base/host_list.hpp"

namespace rondo {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// The first number of "01-03,07", with its leading zeros, which belong to the name.
std::optional<std::string_view> first_number(std::string_view ranges) {
  const std::string_view range = ranges.substr(0, ranges.find(','));
  const size_t dash = range.find('-');
  const std::string_view number = range.substr(0, dash);
  if (!is_number(number) || (dash != range.npos && !is_number(range.substr(dash + 1)))) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::string> first_host(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    const size_t special = list.find_first_of(",[]");
    host += list.substr(0, special);
    list.remove_prefix(special == list.npos ? list.size() : special);
    if (list.empty() || list.front() == ',') break;
    const size_t end = list.find(']');
    if (list.front() == ']' || end == list.npos) return std::nullopt;
    const auto number = first_number(list.substr(1, end - 1));
    if (!number) return std::nullopt;
    host += *number;
    list.remove_prefix(end + 1);
  }
  if (host.empty() || host.find_first_of(" \t\r\n") != host.npos) return std::nullopt;
  return host;
}

}  // namespace rondo
