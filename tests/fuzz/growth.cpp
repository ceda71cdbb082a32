// What ranks tell each other before they take newcomers in.
#include "communicator/growth.hpp"

#include <vector>

#include "input.hpp"

using namespace rondo;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  std::vector<Growth> said(1 + input.value<uint8_t>() % 4);
  for (Growth& growth : said) growth = input.value<uint8_t>() & 1 ? said[0] : input.value<Growth>();
  bool alike = true;
  for (const Growth& growth : said)
    alike = alike && growth.newcomers == said[0].newcomers && growth.root == said[0].root;
  const auto same = same_growth(said);
  require(same.ok() == alike, "ranks agree or they do not");
  require(same || (same.error().peer < said.size() && same.error().message.size() < 1000),
          "a difference is told in a line");

  const auto world = input.value<uint32_t>(), newcomers = input.value<uint32_t>();
  if (const auto growth = growth_of(world, newcomers, input.text()))
    require(world + newcomers > world && growth->root.back() == 0, "newcomers and a root that ends");
  return 0;
}
