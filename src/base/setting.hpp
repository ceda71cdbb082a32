// One variable's name and value, and the complaints about it. For the readers of the environment only.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace rondo {

/// How a value was given, for messages: "WORLD_SIZE=0", or "Options::world=0" when it came from code.
struct Setting {
  std::string name, value;
  std::string text() const { return name + "=" + value; }
};

Error invalid(const Setting& setting, std::string_view allowed);
Error missing(std::string_view variables, std::string_view hint);
/// The first of `names` that is set.
std::optional<Setting> first_of(const Lookup& lookup, std::initializer_list<const char*> names);
Result<uint32_t> whole_number(const Setting& setting, uint32_t least, uint32_t most);

}  // namespace rondo
