// The header by which two ranks see that they run the same call.
#include "engine/call.hpp"

#include "input.hpp"

using namespace rondo;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const auto ours = input.value<engine::Header>(), theirs = input.value<engine::Header>();
  const bool equal = ours.sequence == theirs.sequence && ours.digest == theirs.digest;
  const auto difference = engine::difference(ours, theirs);
  require(difference.has_value() == !equal, "headers differ or they are equal");
  require(!difference || difference->size() < 200, "a difference is told in a line");
  return 0;
}
