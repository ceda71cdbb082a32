// The table of algorithms, from a file or from rank 0.
#include "engine/tuning.hpp"

#include "input.hpp"

using namespace rondo;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tuning = engine::Tuning::parse(fuzz::Input(data, size).text());
  if (!tuning) {
    require(tuning.error().code == ErrorCode::invalid_argument, "a wrong table is the user's");
    return 0;
  }
  const auto again = engine::Tuning::parse(tuning->text());
  require(again && again->situation() == tuning->situation() && again->lines() == tuning->lines(),
          "a table comes back");
  return 0;
}
