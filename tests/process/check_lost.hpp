// What every survivor must have been told of a rank that died.
#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "workers.hpp"

namespace rondo::test {

/// Of a worker that was told within two seconds after `since` that `victim` is lost.
inline Report check_lost(const Ended& ended, uint32_t victim, double since) {
  CAPTURE(ended.out);
  const auto told = report(ended, "error");
  REQUIRE(told);
  CHECK(told->code == "peer_lost");
  CHECK(told->peer == int(victim));
  CHECK(has(told->text, fmt::format("rank {}", victim)));
  CHECK(told->at - since < 2);
  return *told;
}

}  // namespace rondo::test
