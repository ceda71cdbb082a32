// Every operation x algorithm x type x reduction x world x count x placement over sockets, shared memory and the fake link.
//
// The whole product is run of f32. Of every other type each (operation, algorithm, reduction, placement) is run with one of
// the counts, which rotates from case to case and from type to type: all pairs of type and count, operation and type, and
// so on. Misalignments and roots rotate through all of it. collectives_large.cpp has the large vectors.
#include <set>

#include "cases.hpp"
#include "tests/skip.hpp"

namespace rondo::test {
namespace {

void run_small(SocketKind kind) {
  for (const uint32_t n : {1u, 2u, 3u, 5u, 7u, 8u}) {
    World world = World::over_sockets(n, kind);
    run_all_types(world, small_counts(n));
  }
}

constexpr LinkCaps tiny_caps{.slot_bytes = 256, .slots = 3};

}  // namespace

TEST_CASE("collectives: f32 meets every pair of a root, or a distance, and in place or out") {
  for (const uint32_t n : {1u, 2u, 3u, 5u, 7u, 8u}) {
    std::set<std::tuple<Operation, bool, Rank>> met;
    for (const Case& c : cases_for(n, small_counts(n)))
      if (is_defined(DataType::f32, c.reduction)) met.emplace(c.operation, c.in_place, c.root);
    CAPTURE(n);
    for (Rank root = 0; root < n; root++) {
      CAPTURE(root);
      for (const Operation operation : {Operation::reduce, Operation::gather, Operation::scatter})
        for (const bool in_place : {false, true}) CHECK(met.contains({operation, in_place, root}));
      CHECK(met.contains({Operation::broadcast, true, root}));
      CHECK(met.contains({Operation::send_recv, false, root}));
    }
  }
}

TEST_CASE("collectives over TCP on IPv4: every operation, type and reduction, small counts") {
  run_small(SocketKind::tcp4);
}
TEST_CASE("collectives over TCP on IPv6") {
  if (!has_ipv6_loopback()) SKIP_TEST("no IPv6 loopback on this machine");
  run_small(SocketKind::tcp6);
}
TEST_CASE("collectives over Unix sockets") { run_small(SocketKind::unix_pair); }

TEST_CASE("collectives over TLS") {
  for (const uint32_t n : {2u, 3u, 5u, 8u}) {
    World world = World::over_sockets(n, SocketKind::tls);
    run_all_types(world, {0, 1, uint64_t(n) + 1, 1023});
  }
}
TEST_CASE("collectives over TLS: sizes around those of records, reads and windows, also asleep at once") {
  for (const bool asleep : {false, true}) {
    for (const uint32_t n : {2u, 3u, 5u}) {
      World world = World::over_sockets(n, SocketKind::tls);
      for (Rank rank = 0; rank < n && asleep; rank++) world.waiter(rank).set_budget({});
      std::vector<Case> cases;
      for (const uint64_t record : {4096, 16384, 4 * 16384})  // floats of a record, of a read, of more
        for (const uint64_t chunks : {uint64_t(1), uint64_t(n)})
          for (const uint64_t count : {record * chunks - 5, record * chunks, record * chunks + 1})
            for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct})
              cases.push_back({Operation::all_reduce, algorithm, Reduction::sum, count, true, 0, 0});
      cases.push_back({Operation::all_reduce, Algorithm::ring, Reduction::sum, (1 << 20) + 1, true, 0, 0});
      cases.push_back({Operation::all_reduce, Algorithm::direct, Reduction::sum, (1 << 20) + 1, true, 0, 0});
      run_cases<float>(world, cases);
    }
  }
}

TEST_CASE("collectives over shared memory") {
  for (const uint32_t n : {1u, 2u, 3u, 5u, 7u, 8u}) {
    World world = World::over_shm(n);
    run_all_types(world, small_counts(n));
  }
}

TEST_CASE("collectives over shared memory: every world from 9 to 33") {
  for (uint32_t n = 9; n <= 33; n++) {
    World world = World::over_shm(n);
    std::vector<Case> cases;
    for (const Case& c : cases_for(n, {uint64_t(n) + 1}))
      if (c.reduction == Reduction::sum && (c.in_place || c.root % 7 == 0)) cases.push_back(c);
    run_cases<float>(world, cases);
  }
}

TEST_CASE("collectives over shared memory with few small slots and sleepers") {
  for (const uint32_t n : {2u, 3u, 8u}) {
    World world = World::over_shm(n, {.slot_bytes = 64, .slots = 2});
    for (Rank rank = 0; rank < n; rank++)
      world.waiter(rank).set_budget({});  // sleep as soon as nothing moves
    run_all_types(world,
                  {uint64_t(n) + 1, n == 8 ? uint64_t(257) : 1023});  // of f32 two slots and one element
  }
}

TEST_CASE("collectives over shared memory from and to memory that is lent") {
  for (const uint32_t n : {2u, 3u, 5u, 8u}) {
    for (const shm::Sizes& sizes : {shm::Sizes{}, {.slot_bytes = 256, .slots = 3}}) {
      World world = World::over_lent_shm(n, sizes, 1);
      for (Rank rank = 0; rank < n && sizes.slots == 3; rank++) world.waiter(rank).set_budget({});
      run_all_types(world, {1, uint64_t(n) + 1, 1023});
      CHECK(world.bytes_referred() > 0);
    }
  }
}

TEST_CASE("collectives over shared memory from private memory that is pulled") {
  for (const shm::Sizes& sizes : {shm::Sizes{}, {.slot_bytes = 256, .slots = 3}}) {
    World world = World::over_pulled_shm(sizes, 1);
    for (Rank rank = 0; rank < 2 && sizes.slots == 3; rank++) world.waiter(rank).set_budget({});
    run_all_types(world, {1, 3, 1023});
    CHECK(world.bytes_referred() > 0);
  }
}

TEST_CASE("collectives: 1 Mi + 1 elements from and to memory that is lent, or private and pulled") {
  const uint64_t count = (1 << 20) + 1;
  for (const uint32_t lending : {0u, 2u, 3u, 8u}) {
    World world = lending == 0 ? World::over_pulled_shm({}, 4096) : World::over_lent_shm(lending, {}, 4096);
    std::vector<Case> cases;
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring})
      for (const bool in_place : {true, false}) {
        const size_t offset = in_place ? 0 : 4;
        cases.push_back({Operation::all_reduce, algorithm, Reduction::sum, count, in_place, offset, 0});
        cases.push_back({Operation::reduce_scatter, algorithm, Reduction::max, count, in_place, offset, 0});
        cases.push_back({Operation::all_gather, algorithm, Reduction::sum, count, in_place, offset, 0});
        cases.push_back(
            {Operation::broadcast, algorithm, Reduction::sum, count, true, offset, world.size() - 1});
      }
    run_cases<float>(world, cases);
    const uint64_t first = world.bytes_referred();
    run_cases<bfloat16>(world, cases);
    CHECK(first > 0);
    CHECK(world.bytes_referred() > first);
  }
}

TEST_CASE("collectives over sockets: 1 Mi + 1 elements, many windows") {
  const uint64_t count = (1 << 20) + 1;
  for (const uint32_t n : {2u, 3u, 8u}) {
    World world = World::over_sockets(n, SocketKind::tcp4);
    run_cases<float>(world, {{Operation::all_reduce, Algorithm::ring, Reduction::sum, count, true, 0, 0},
                             {Operation::all_reduce, Algorithm::ring, Reduction::avg, count, false, 1, 0},
                             {Operation::all_gather, Algorithm::ring, Reduction::sum, count, false, 1, 0},
                             {Operation::broadcast, Algorithm::ring, Reduction::sum, count, true, 0, n - 1}});
    run_cases<int64_t>(world,
                       {{Operation::all_reduce, Algorithm::ring, Reduction::avg, count, true, 0, 0},
                        {Operation::reduce_scatter, Algorithm::ring, Reduction::avg, count, false, 3, 0},
                        {Operation::reduce_scatter, Algorithm::ring, Reduction::max, count, true, 0, 0}});
  }
}

TEST_CASE("collectives: direct, 1 Mi + 1 elements, over sockets and shared memory") {
  const uint64_t count = (1 << 20) + 1;
  for (const uint32_t n : {2u, 3u, 8u}) {
    World worlds[] = {World::over_sockets(n, SocketKind::tcp4), World::over_shm(n)};
    for (World& world : worlds) {
      run_cases<float>(world,
                       {{Operation::all_reduce, Algorithm::direct, Reduction::sum, count, true, 0, 0},
                        {Operation::all_gather, Algorithm::direct, Reduction::sum, count, false, 1, 0},
                        {Operation::broadcast, Algorithm::direct, Reduction::sum, count, true, 0, n - 1}});
      run_cases<bfloat16>(
          world, {{Operation::all_reduce, Algorithm::direct, Reduction::avg, count, true, 1, 0},
                  {Operation::reduce_scatter, Algorithm::direct, Reduction::max, count, false, 3, 0}});
    }
  }
}

TEST_CASE("collectives over sockets whose kernel buffers hold far less than a window") {
  const uint64_t count = 150'000;  // two windows: TCP crawls here
  for (const SocketKind kind : {SocketKind::tcp4_tiny, SocketKind::unix_tiny, SocketKind::tls_tiny}) {
    World world = World::over_sockets(4, kind);
    run_cases<float>(world, {{Operation::all_reduce, Algorithm::direct, Reduction::sum, count, true, 0, 0},
                             {Operation::all_reduce, Algorithm::ring, Reduction::sum, count, true, 0, 0},
                             {Operation::reduce_scatter, Algorithm::ring, Reduction::max, count, false, 1, 0},
                             {Operation::all_gather, Algorithm::ring, Reduction::sum, count, false, 1, 0}});
  }
}

TEST_CASE("collectives with slots so small that every call has many windows") {
  for (const uint32_t n : {2u, 3u, 5u, 8u}) {
    World world = World::over_sockets(n, SocketKind::tcp4, {.slot_bytes = 64, .slots = 2, .call_bytes = 100});
    run_all_types(world, {uint64_t(n) + 1, 1023});
  }
}

TEST_CASE("collectives over a link that writes short, hides data and refuses credit") {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const uint32_t n : {2u, 3u, 5u, 8u}) {
      const fake::Faults faults{
          .seed = seed, .capacity = 300, .largest_write = 37, .write_refused = 0.2, .read_hidden = 0.3};
      World world = World::over_fake(n, tiny_caps, faults);
      run_cases<float>(world, cases_for(n, {0, 1, uint64_t(n) + 1, 1023}));
      run_cases<int32_t>(world, cases_for(n, {uint64_t(n) + 1}));
    }
  }
}

TEST_CASE("collectives over a link with room for one byte") {
  World world = World::over_fake(3, tiny_caps, {.capacity = 1, .largest_write = 1});
  run_cases<double>(world, cases_for(3, {4, 100}));
}

TEST_CASE("payload counters: a full-width ring all-reduce moves exactly 2(N-1)m bytes over all ranks") {
  for (const uint32_t n : {1u, 2u, 3u, 5u, 8u}) {
    for (const uint64_t count : {0u, 1u, 7u, 1023u, 100'003u}) {
      World world = World::over_sockets(n, SocketKind::unix_pair);
      run_cases<float>(world, {{Operation::all_reduce, Algorithm::ring, Reduction::sum, count, true, 0, 0}});
      uint64_t payload = 0, headers = 0;
      for (Rank rank = 0; rank < n; rank++) {
        payload += world.engine(rank).counters().payload_bytes_sent;
        headers += world.engine(rank).counters().header_bytes_sent;
      }
      CHECK(payload == 2 * (n - 1) * count * sizeof(float));
      CHECK(headers == (n == 1 ? 0 : n * 16));
    }
  }
}

}  // namespace rondo::test
