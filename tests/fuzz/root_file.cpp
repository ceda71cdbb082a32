// A root file, which anybody who may write to its folder can have written.
#include "bootstrap/root_file.hpp"

#include "input.hpp"

using namespace rondo::bootstrap;
using rondo::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto content = parse_root_file(rondo::fuzz::Input(data, size).text());
  if (!content) return 0;
  require(is_tcp(content->record.address), "a root file leads to a TCP address");
  const std::string text = to_text(*content);
  const auto again = parse_root_file(text);
  require(again && to_text(*again) == text, "a root file comes back");
  return 0;
}
