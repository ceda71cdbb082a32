#include "schedule/layout.hpp"

#include <doctest/doctest.h>

using namespace rondo;
using namespace rondo::schedule;

TEST_CASE("layout: chunks follow each other, cover everything and differ by at most one element") {
  for (uint32_t chunks = 1; chunks <= 64; chunks++) {
    for (uint64_t count : {0ull, 1ull, 5ull, 63ull, 64ull, 65ull, 1000ull, (1ull << 40) + 7}) {
      uint64_t next = 0;
      for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        const Extent extent =
            Layout(Operation::all_reduce, count, chunks, {0, 4}).extent(Buffer::input, chunk);
        REQUIRE(extent.first == next);
        REQUIRE(extent.count >= count / chunks);
        REQUIRE(extent.count <= (count + chunks - 1) / chunks);
        next += extent.count;
      }
      REQUIRE(next == count);
    }
  }
}

TEST_CASE("layout: the larger chunks come first, the empty ones last") {
  const Layout layout(Operation::all_reduce, 6, 4, {0, 4});
  CHECK(layout.extent(Buffer::output, 0) == Extent{0, 2});
  CHECK(layout.extent(Buffer::output, 1) == Extent{2, 2});
  CHECK(layout.extent(Buffer::output, 2) == Extent{4, 1});
  CHECK(layout.extent(Buffer::output, 3) == Extent{5, 1});
  CHECK(Layout(Operation::all_reduce, 2, 4, {0, 4}).extent(Buffer::input, 3) == Extent{2, 0});
}

TEST_CASE("layout: a shard buffer holds its own chunk at 0") {
  const Layout scatter(Operation::reduce_scatter, 10, 4, {2, 4});
  CHECK(scatter.extent(Buffer::input, 2) == Extent{6, 2});
  CHECK(scatter.extent(Buffer::output, 2) == Extent{0, 2});
  const Layout gather(Operation::all_gather, 10, 4, {1, 4});
  CHECK(gather.extent(Buffer::input, 1) == Extent{0, 3});
  CHECK(gather.extent(Buffer::output, 1) == Extent{3, 3});
}
