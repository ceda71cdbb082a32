#include "cli/size.hpp"

#include <cctype>
#include <exception>

namespace rondo::cli {
namespace {

// "64M" -> 67108864; K, M and G are powers of 1024.
uint64_t bytes_of(const std::string& text) {
  size_t used = 0;
  uint64_t value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const size_t power = unit.empty() ? 0 : std::string("KMG").find(char(std::toupper(unit[0]))) + 1;
  if (used == 0 || unit.size() > 1 || (!unit.empty() && power == 0) || text[0] == '-' ||
      value > (uint64_t(1) << 42) >> (10 * power))
    throw CLI::ValidationError("size",
                               "'" + text + "' is not a size: give bytes, or a number with K, M or G");
  return value << (10 * power);
}

}  // namespace

CLI::Option* add_size(CLI::App& app, const std::string& flags, uint64_t& target, const std::string& help) {
  return app
      .add_option_function<std::string>(
          flags, [&target](const std::string& text) { target = bytes_of(text); }, help)
      ->type_name("BYTES");
}

}  // namespace rondo::cli
