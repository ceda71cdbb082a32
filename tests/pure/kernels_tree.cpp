// finish_tree: bit for bit the canonical tree, for any number of ranks.
#include <doctest/doctest.h>

#include "kernels_operands.hpp"

namespace rondo::tests {
namespace {

using kernels::Isa;
using kernels::Reducer;

template <class T, class A>
struct TreeCheck {
  Isa isa;
  Reduction reduction;
  Random& random;

  std::vector<Misaligned<T>> contributions(uint32_t world, size_t count) const {
    std::vector<Misaligned<T>> all;
    for (uint32_t rank = 0; rank < world; ++rank) {
      all.emplace_back(count, (rank * 3 + count) % 8);
      all.back().fill(random);
      // Special values would make most results NaN; of floats only one in eight elements keeps them.
      for (size_t i = 0; is_float<T> && i < count; ++i) {
        if (i % 8 != 0)
          all.back().set(i, T((float(random() % 4096) - 2048) * (rank % 3 == 0 ? 1000 : 0.01f)));
      }
    }
    return all;
  }

  /// With `in_place` the target is one of the sources.
  bool right(uint32_t world, size_t count, bool in_place) const {
    std::vector<Misaligned<T>> values = contributions(world, count);
    std::vector<T> expected;
    for (size_t i = 0; i < count; ++i) {
      const auto at = [&values, i](uint32_t rank) { return widened<A>(values[rank][i]); };
      expected.push_back(finished<T, A>(reduction, tree<A>(reduction, at, world), world));
    }
    std::vector<const std::byte*> sources;
    for (const auto& value : values) sources.push_back(value.data());
    Misaligned<T> apart(count, count % 8);
    Misaligned<T>& target = in_place ? values[random() % world] : apart;
    reducer(isa, data_type_of<T>, reduction).finish_tree(target.data(), sources.data(), world, count);
    for (size_t i = 0; i < count; ++i) {
      if (!same_bits(target[i], expected[i])) return false;
    }
    return target.only_its_own_bytes_written();
  }
};

template <class T>
void check_trees(const std::vector<uint32_t>& worlds) {
  Random random(2);
  for (const Isa isa : isas()) {
    for_each_reduction<T>([&]<class A>(A, Reduction reduction) {
      CAPTURE(name_of(isa));
      CAPTURE(std::string(name_of(data_type_of<T>)) + " " + std::string(name_of(reduction)));
      const TreeCheck<T, A> check{isa, reduction, random};
      for (const uint32_t world : worlds) {
        CAPTURE(world);
        CHECK(check.right(world, 35, false));
        CHECK(check.right(world, 16, true));
        // More than one block, of which the last is short.
        if (world < 10) CHECK(check.right(world, 1024 / sizeof(A) + 9, world % 2 == 0));
      }
      CHECK(check.right(3, 0, false));
    });
  }
}

std::vector<uint32_t> up_to(uint32_t last) {
  std::vector<uint32_t> all;
  for (uint32_t world = 1; world <= last; ++world) all.push_back(world);
  return all;
}

}  // namespace

TEST_CASE("tree: f32, 1 to 64 ranks, in and out of place") { check_trees<float>(up_to(64)); }
TEST_CASE("tree: bf16, 1 to 64 ranks") { check_trees<bfloat16>(up_to(64)); }
TEST_CASE("tree: every type, 1 to 9 ranks and some more") {
  std::vector<uint32_t> worlds = up_to(9);
  for (const uint32_t more : {11u, 12u, 13u, 16u, 17u, 24u, 31u, 33u, 63u}) worlds.push_back(more);
  for_each_type([&worlds]<class T>(T) { check_trees<T>(worlds); });
}

TEST_CASE("tree: the order of additions") {
  for (const Isa isa : isas()) {
    const auto sum = [isa](const std::vector<float>& values) {
      return reduce_tree(isa, Reduction::sum, values);
    };
    // (1e8 + 1) + (-1e8 + 1): both 1 are lost. From left to right it would be 1.
    CHECK(sum({1e8f, 1, -1e8f, 1}) == 0);
    CHECK(sum({1e8f, 1, -1e8f, 1, 1}) == 1);
    CHECK(sum({1e8f, -1e8f, 1}) == 1);
    CHECK(sum({1, 1e8f, -1e8f}) == 0);
    // Rank 4 alone is a node: ((0 + 0) + (0 + 0)) + ((1e8 + -1e8) + 1) for seven ranks.
    CHECK(sum({0, 0, 0, 0, 1e8f, -1e8f, 1}) == 1);
    CHECK(sum({0, 0, 0, 0, 1, 1e8f, -1e8f}) == 0);
    CHECK(sum({1e8f, 0, 0, 0, 0, 0, 0, 0, -1e8f, 1}) == 0);
    CHECK(sum({1e8f, 0, 0, 0, 0, 0, 0, 0, -1e8f, 0, 1}) == 0);
    CHECK(sum({0, 0, 0, 0, 0, 0, 0, 0, 1e8f, -1e8f, 1}) == 1);
  }
}

TEST_CASE("tree: a thousand ranks") {
  Random random(5);
  for (const Isa isa : isas()) {
    for (const uint32_t world : {1000u, 1023u, 1024u, 1025u}) {
      CAPTURE(world);
      CHECK(TreeCheck<float, float>{isa, Reduction::sum, random}.right(world, 5, false));
      CHECK(TreeCheck<float16, float>{isa, Reduction::avg, random}.right(world, 5, true));
    }
  }
}

}  // namespace rondo::tests
