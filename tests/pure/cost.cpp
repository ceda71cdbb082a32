#include "schedule/cost.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "schedule/catalogue.hpp"
#include "schedule/payload.hpp"
#include "schedule/profile.hpp"

using namespace rondo;
using namespace rondo::schedule;

namespace {
const Schedule& ring(Operation operation) { return *find(operation, Algorithm::ring); }
// The three parts of the cost, each alone: in messages, and in vectors sent and reduced.
struct Parts {
  double alpha, beta, gamma;
};
Parts parts(Operation operation, Algorithm algorithm, const Shape& shape) {
  const Schedule& schedule = *find(operation, algorithm);
  const Vector vector{.count = uint64_t(1) << 20};
  const double bytes = double(vector.count) * 4;
  return {cost(schedule, shape, vector, {.alpha = 1}), cost(schedule, shape, vector, {.beta = 1}) / bytes,
          cost(schedule, shape, vector, {.gamma = 1}) / bytes};
}
void check(const Parts& parts, double alpha, double beta, double gamma) {
  CHECK(parts.alpha == doctest::Approx(alpha).epsilon(1e-9));
  CHECK(parts.beta == doctest::Approx(beta).epsilon(1e-9));
  CHECK(parts.gamma == doctest::Approx(gamma).epsilon(1e-9));
}

const LinkModel model{.alpha = 3e-6, .beta = 2e-10, .gamma = 5e-11};
}  // namespace

TEST_CASE("payload: exact for any world and count") {
  for (uint64_t world = 1; world <= 33; world++) {
    const Shape shape{.world = uint32_t(world), .root = uint32_t(world / 2)};
    for (uint64_t m : {0ull, 1ull, 2ull, 7ull, 31ull, 32ull, 33ull, 1000003ull, 1ull << 40}) {
      CAPTURE(world);
      CAPTURE(m);
      REQUIRE(payload_elements(ring(Operation::all_reduce), m, shape) == 2 * (world - 1) * m);
      REQUIRE(payload_elements(ring(Operation::reduce_scatter), m, shape) == (world - 1) * m);
      REQUIRE(payload_elements(ring(Operation::all_gather), m, shape) == (world - 1) * m);
      REQUIRE(payload_elements(ring(Operation::broadcast), m, shape) == (world - 1) * m);
    }
  }
  // Chunks of 2, 2, 1 and 1: rank 0 sends all but chunk 0, then all but chunk 1; rank 2 all but 2, then all
  // but 3.
  CHECK(payload_elements(ring(Operation::all_reduce), 6, {.world = 4}, 0) == 4 + 4);
  CHECK(payload_elements(ring(Operation::all_reduce), 6, {.world = 4}, 2) == 5 + 5);
  CHECK(payload_elements(*find(Operation::barrier, Algorithm::dissemination), 0, {.world = 9}) == 0);
}

TEST_CASE("cost: the ring meets its closed forms") {
  for (uint32_t world = 1; world <= 16; world++) {
    const Vector vector{.count = uint64_t(world) * 1000};
    const double n = world, m = double(vector.count) * 4, part = (n - 1) / n * m;
    const auto walked = [&](Operation operation) {
      return cost(ring(operation), {.world = world}, vector, model);
    };
    CAPTURE(world);
    REQUIRE(walked(Operation::reduce_scatter) ==
            doctest::Approx((n - 1) * model.alpha + part * (model.beta + model.gamma)).epsilon(1e-9));
    REQUIRE(walked(Operation::all_gather) ==
            doctest::Approx((n - 1) * model.alpha + part * model.beta).epsilon(1e-9));
    REQUIRE(walked(Operation::all_reduce) ==
            doctest::Approx(2 * (n - 1) * model.alpha + part * (2 * model.beta + model.gamma)).epsilon(1e-9));
    REQUIRE(walked(Operation::broadcast) ==
            doctest::Approx((n - 1) * (model.alpha + m * model.beta)).epsilon(1e-9));
  }
}

TEST_CASE("cost: halving and doubling meet their closed forms where the world is a power of two") {
  for (uint32_t lg = 0; lg <= 6; lg++) {
    const Shape shape{.world = 1u << lg};
    const double n = shape.world, part = (n - 1) / n;
    CAPTURE(shape.world);
    const auto of = [&](Operation operation) { return parts(operation, Algorithm::halving_doubling, shape); };
    check(of(Operation::reduce_scatter), lg, part, part);
    check(of(Operation::all_gather), lg, part, 0);
    check(of(Operation::all_reduce), 2 * lg, 2 * part, part);
    // Chunks go on as soon as they can, so together the three cost less.
    const Vector vector{.count = 1 << 20};
    const double m = 4 << 20;
    const double sum = 2 * lg * model.alpha + part * m * (2 * model.beta + model.gamma);
    const double whole =
        cost(*find(Operation::all_reduce, Algorithm::halving_doubling), shape, vector, model);
    CHECK(whole <= sum * (1 + 1e-9));
    CHECK(whole >= 2 * lg * model.alpha + 2 * part * m * model.beta);
  }
}

TEST_CASE("cost: double trees meet their closed forms where the world is a power of two") {
  for (uint32_t lg = 2; lg <= 6; lg++) {
    const Shape shape{.world = 1u << lg, .root = 3};
    CAPTURE(shape.world);
    check(parts(Operation::broadcast, Algorithm::double_tree, shape), 2 * lg, lg, 0);
    check(parts(Operation::reduce, Algorithm::double_tree, shape), 2 * lg, lg, lg);
    check(parts(Operation::all_reduce, Algorithm::double_tree, shape), 4 * lg - 2, 2 * lg - 1, lg - 0.5);
  }
}

TEST_CASE("cost: hierarchical meets its closed form where nodes are equal") {
  for (uint32_t nodes : {1u, 2u, 4u, 8u}) {
    for (uint32_t size : {1u, 2u, 4u, 8u}) {
      std::vector<uint32_t> map;
      for (Rank rank = 0; rank < nodes * size; rank++) map.push_back(rank % nodes);
      const double n = nodes * size, part = (n - 1) / n;
      CAPTURE(nodes);
      CAPTURE(size);
      const auto of = [&](Operation operation) {
        return parts(operation, Algorithm::hierarchical, {.world = nodes * size, .nodes = map});
      };
      check(of(Operation::reduce_scatter), nodes + size - 2, part, part);
      check(of(Operation::all_gather), nodes + size - 2, part, 0);
      check(of(Operation::all_reduce), 2 * (nodes + size - 2), 2 * part, part);
    }
  }
}

TEST_CASE("cost: wide partials cost their width, and only they") {
  const Vector vector{.count = 4000, .element_bytes = 2, .accumulator_bytes = 4};
  const LinkModel bytes{.beta = 1};  // on 4 ranks: 1 narrow round, 2 wide, 3 narrow, 1000 elements each
  CHECK(cost(ring(Operation::all_reduce), {.world = 4}, vector, bytes) ==
        doctest::Approx(1000 * (2 + 2 * 4 + 3 * 2)));
}

TEST_CASE("cost: a barrier takes ceil(log2 N) messages in a row") {
  const Schedule& barrier = *find(Operation::barrier, Algorithm::dissemination);
  for (uint32_t world = 1; world <= 64; world++)
    REQUIRE(cost(barrier, {.world = world}, {}, {.alpha = 1}) == doctest::Approx(std::bit_width(world - 1)));
}

TEST_CASE("profile: meets the closed forms, for worlds 1 to 16") {
  const auto of = [](Operation operation, Algorithm algorithm, uint32_t world, bool publishes = false) {
    return profile_of(*find(operation, algorithm), {.world = world}, 1,
                      publishes ? Publications::yes : Publications::no);
  };
  for (uint32_t world = 2; world <= 16; world++) {
    CAPTURE(world);
    const double n = world, part = (n - 1) / n;
    const auto is = [&](const Profile& profile, double rounds, const Work& work) {
      CHECK(profile.inner_rounds == rounds);
      CHECK(profile.outer_rounds == 0);
      for (const Work& found : {profile.busiest, profile.mean}) {
        CHECK(found.messages == doctest::Approx(work.messages));
        CHECK(found.bytes == doctest::Approx(work.bytes));
        CHECK(found.reduced == doctest::Approx(work.reduced));
        CHECK(found.cold == doctest::Approx(work.cold));
        CHECK(found.stored == doctest::Approx(work.stored));
      }
    };
    is(of(Operation::all_reduce, Algorithm::ring, world), 2 * (n - 1),
       {2 * (n - 1) + 1, 2 * part, part, 1 / n, 0});
    is(of(Operation::all_reduce, Algorithm::direct, world), 2, {3 * (n - 1), 2 * part, part, 2 * part, 0});
    // What is published is put once.
    is(of(Operation::all_reduce, Algorithm::direct, world, true), 2,
       {2 * (n - 1) + 2, part + (1 / n + part) / 2, part, part + 1 / n, 0});
    is(of(Operation::all_reduce, Algorithm::one_shot, world), 1, {2 * (n - 1), n - 1, n - 1, n - 1, 1});
    is(of(Operation::all_reduce, Algorithm::one_shot, world, true), 1, {2, n / 2, n - 1, 1, 1});
  }
}

TEST_CASE("profile: what is moved is what payloads say, and sums are complete, whatever the world") {
  for (const Schedule& schedule : catalogue()) {
    for (uint32_t world = 1; world <= 16; world++) {
      const Shape shape{.world = world};
      const auto profile = profile_of(schedule, shape, 1, Publications::no);
      CAPTURE(name_of(schedule.operation));
      CAPTURE(name_of(schedule.algorithm));
      CAPTURE(world);
      // A vector that every chunk divides; a profile knows shares of it, not extents.
      const uint64_t count = 720720;
      if (schedule.operation != Operation::barrier && schedule.operation != Operation::all_to_all &&
          schedule.operation != Operation::send_recv && count % schedule.chunks(shape) == 0)
        CHECK(profile.mean.bytes * world ==
              doctest::Approx(double(payload_elements(schedule, count, shape)) / double(count)));
      if (reduces(schedule.operation))
        CHECK(profile.mean.reduced * world ==
              doctest::Approx(schedule.operation == Operation::all_reduce &&
                                      schedule.algorithm == Algorithm::one_shot
                                  ? double(world) * (world - 1)
                                  : double(world - 1)));
      CHECK(profile.busiest.bytes >= profile.mean.bytes * (1 - 1e-12));
    }
  }
}

TEST_CASE("profile: rounds and bytes between nodes") {
  const std::vector<uint32_t> nodes{0, 0, 0, 0, 1, 1, 1, 1};
  const Shape shape{.world = 8, .nodes = nodes};
  const auto of = [&](Algorithm algorithm) {
    return profile_of(*find(Operation::all_reduce, algorithm), shape, 1, Publications::no);
  };
  CHECK(of(Algorithm::ring).outer_rounds == 14);  // some rank sends to the other node in every one
  CHECK(of(Algorithm::ring).outgoing == doctest::Approx(2 * 7 / 8.0));
  CHECK(of(Algorithm::direct).outgoing == doctest::Approx(2 * 4 * 4 / 8.0));
  CHECK(of(Algorithm::hierarchical).outer_rounds == 2);
  CHECK(of(Algorithm::hierarchical).inner_rounds == 6);
  CHECK(of(Algorithm::hierarchical).outgoing == doctest::Approx(2 * 1 / 2.0));
  const auto reduce =
      profile_of(*find(Operation::reduce, Algorithm::hierarchical), shape, 1, Publications::no);
  CHECK(reduce.outer_rounds == 1);
  CHECK(reduce.outgoing == doctest::Approx(1));
}

TEST_CASE("profile: wide partials weigh what they are wide, and in large worlds some ranks stand for all") {
  const auto& halving = *find(Operation::reduce_scatter, Algorithm::halving_doubling);
  const auto profile = profile_of(halving, {.world = 4}, 2, Publications::no);
  CHECK(profile.busiest.bytes == doctest::Approx(0.5 + 2 * 0.25));  // the first half is what the ranks have
  const auto& ring = *find(Operation::all_reduce, Algorithm::ring);
  const auto large = profile_of(ring, {.world = 300}, 1, Publications::no);
  CHECK(large.inner_rounds == 598);
  CHECK(large.mean.bytes == doctest::Approx(2 * 299 / 300.0));
}
