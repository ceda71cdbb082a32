#include "base/setting.hpp"

#include <fmt/format.h>

#include <charconv>

namespace rondo {

Error invalid(const Setting& setting, std::string_view allowed) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", setting.text(), allowed)};
}

Error missing(std::string_view variables, std::string_view hint) {
  return {ErrorCode::invalid_argument, fmt::format("{} not set: {}", variables, hint)};
}

std::optional<Setting> first_of(const Lookup& lookup, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (auto value = lookup(name); value && !value->empty()) return Setting{name, std::move(*value)};
  return std::nullopt;
}

Result<uint32_t> whole_number(const Setting& setting, uint32_t least, uint32_t most) {
  uint32_t number = 0;
  const char* const last = setting.value.data() + setting.value.size();
  const auto [end, error] = std::from_chars(setting.value.data(), last, number);
  if (error != std::errc() || end != last || number < least || number > most)
    return invalid(setting, fmt::format("must be a whole number from {} to {}", least, most));
  return number;
}

}  // namespace rondo
