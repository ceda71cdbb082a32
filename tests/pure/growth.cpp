#include "communicator/growth.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace rondo;

TEST_CASE("growth: what cannot be grown to is refused") {
  CHECK(growth_of(3, 1, "unix:@name").ok());
  CHECK(growth_of(3, 65533, "unix:@name").ok());  // as many as RONDO_WORLD may say
  for (const auto& wrong :
       {growth_of(3, 0, "unix:@name"), growth_of(3, 65534, "unix:@name"), growth_of(65536, 1, "unix:@name"),
        growth_of(3, 0xffffffff, "unix:@name"), growth_of(3, 1, ""), growth_of(3, 1, "nowhere"),
        growth_of(3, 1, "unix:@" + std::string(300, 'x'))}) {
    REQUIRE_FALSE(wrong.ok());
    CHECK(wrong.error().code == ErrorCode::invalid_argument);
    CHECK(wrong.error().message.starts_with("grow: "));
  }
}

TEST_CASE("growth: the first rank that means something else is named, with both") {
  const auto one = *growth_of(3, 1, "unix:@a"), two = *growth_of(3, 2, "unix:@a"),
             other = *growth_of(3, 1, "unix:@ab");
  CHECK(same_growth(std::vector{one, one, one}).ok());
  const auto count = same_growth(std::vector{one, one, two});
  REQUIRE_FALSE(count.ok());
  CHECK(count.error().code == ErrorCode::mismatch);
  CHECK(count.error().peer == 2u);
  CHECK(count.error().message == "grow: rank 2 expects 2 newcomers at unix:@a, rank 0 1 at unix:@a");
  CHECK(same_growth(std::vector{one, other, one}).error().peer == 1u);
  Growth endless = one;  // as no rank sends it
  endless.root.fill('x');
  const auto odd = same_growth(std::vector{one, endless});
  REQUIRE_FALSE(odd.ok());
  CHECK(odd.error().message.find(" newcomers at " + std::string(252, 'x') + ", rank 0") != std::string::npos);
}
