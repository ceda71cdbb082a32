// Every operation x type x reduction x world x count x placement over sockets and over the fake link.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "reference.hpp"
#include "schedule/catalogue.hpp"
#include "tests/skip.hpp"
#include "world.hpp"

namespace rondo::test {
namespace {

using schedule::Algorithm;
using schedule::Operation;

struct Case {
  Operation operation;
  Algorithm algorithm;
  Reduction reduction;
  uint64_t count;
  bool in_place;
  size_t offset;  // bytes of misalignment
  Rank root;
};

std::string text(const Case& c, uint32_t world, DataType type) {
  return fmt::format("{} {} {} {} world={} count={} {} offset={} root={}", name_of(c.algorithm),
                     name_of(c.operation), name_of(type), name_of(c.reduction), world, c.count,
                     c.in_place ? "in place" : "out of place", c.offset, c.root);
}

// What rank `rank` holds at index i of the whole vector when the operation is over.
template <class T>
T expected(const Case& c, uint32_t world, Rank rank, uint64_t i) {
  switch (c.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::reduce:
      return reduced<T>(world, i, c.reduction);
    case Operation::scatter:
      return element<T>(c.root, i, c.reduction);
    case Operation::send_recv:
      return element<T>((rank + world - c.root) % world, i, c.reduction);
    case Operation::all_to_all: {
      const uint64_t part = c.count / world;
      return element<T>(Rank(i / part), rank * part + i % part, c.reduction);
    }
    case Operation::gather:
    case Operation::all_gather: {
      Rank owner = 0;
      while (shard(c.count, world, owner).first + shard(c.count, world, owner).count <= i) owner++;
      return element<T>(owner, i, c.reduction);
    }
    case Operation::broadcast:
      return element<T>(c.root, i, c.reduction);
    case Operation::barrier:
      break;
  }
  return T();
}

std::shared_ptr<const schedule::Parts> one_part(uint64_t count) {
  return std::make_shared<schedule::Parts>(schedule::Parts{{0, count}, {0, count}});
}

// What a rank's buffers hold of the whole vector.
std::pair<Extent, Extent> extents(const Case& c, uint32_t world, Rank rank) {
  const Extent whole{0, c.count}, own = shard(c.count, world, rank);
  const bool root = rank == c.root;
  switch (c.operation) {
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::all_to_all:
    case Operation::send_recv:
    case Operation::barrier:
      return {whole, whole};
    case Operation::reduce_scatter:
      return {whole, own};
    case Operation::all_gather:
      return {own, whole};
    case Operation::reduce:
      return {whole, root ? whole : Extent{}};
    case Operation::gather:
      return {own, root ? whole : Extent{}};
    case Operation::scatter:
      return {root ? whole : Extent{}, own};
  }
  return {};
}

// Runs the case on one rank; returns the number of wrong elements.
template <class T>
uint64_t run_rank(const Case& c, engine::Engine& engine, Rank rank, World& ranks) {
  const uint32_t world = ranks.size();
  const auto [in, out] = extents(c, world, rank);
  // Only the root has both buffers.
  const bool rootless = is_rooted(c.operation) && c.operation != Operation::broadcast && rank != c.root;
  const bool in_place = c.in_place && !rootless;
  Guarded<T> whole(c.count, c.offset, ranks.buffer(rank, 0)),
      input(in_place ? 0 : in.count, c.offset, ranks.buffer(rank, 1)),
      output(in_place ? 0 : out.count, 2 * c.offset, ranks.buffer(rank, 2));
  std::byte* input_at = in_place ? whole.data() + in.first * sizeof(T) : input.data();
  std::byte* output_at = in_place ? whole.data() + out.first * sizeof(T) : output.data();
  Guarded<T>& source = in_place ? whole : input;
  for (uint64_t i = 0; i < in.count; i++) {
    const T value = element<T>(rank, in.first + i, c.reduction);
    source.set(in_place ? in.first + i : i, value);
  }
  const engine::Call call{
      .operation = c.operation,
      .algorithm = c.algorithm,
      .type = data_type_of<T>,
      .reduction = c.reduction,
      .count = c.count,
      .root = c.operation == Operation::send_recv ? 0 : c.root,
      .to = c.operation == Operation::send_recv ? (rank + c.root) % world : schedule::nobody,
      .from = c.operation == Operation::send_recv ? (rank + world - c.root) % world : schedule::nobody,
      .parts = c.operation == Operation::send_recv ? one_part(c.count) : nullptr,
      .input = input_at,
      .output = output_at};
  const auto outcome = engine.run(call, soon());
  if (!outcome) {
    if (outcome.error().code != ErrorCode::aborted) MESSAGE(outcome.error().message);
    ranks.fail_all();
    return 1;
  }
  Guarded<T>& result = in_place ? whole : output;
  uint64_t wrong = !whole.intact() + !input.intact() + !output.intact();
  for (uint64_t i = 0; i < out.count; i++)
    wrong += result.get(in_place ? out.first + i : i) != expected<T>(c, world, rank, out.first + i);
  for (uint64_t i = 0; !in_place && i < in.count; i++)
    wrong += input.get(i) != element<T>(rank, in.first + i, c.reduction);
  return wrong;
}

template <class T>
void run_cases(World& world, std::vector<Case> cases) {
  std::erase_if(cases, [](const Case& c) { return !is_defined(data_type_of<T>, c.reduction); });
  std::vector<std::atomic<uint64_t>> wrong(cases.size());
  world.run([&](Rank rank, engine::Engine& engine) {
    // After an error an engine must not run again, and the other ranks would wait for it: one failure ends
    // them all.
    for (size_t k = 0; k < cases.size(); k++) {
      wrong[k] += run_rank<T>(cases[k], engine, rank, world);
      if (world.failure(rank).is_set()) return;
    }
  });
  for (size_t k = 0; k < cases.size(); k++)
    CHECK_MESSAGE(wrong[k] == 0, text(cases[k], world.size(), data_type_of<T>));
}

std::vector<uint64_t> small_counts(uint32_t world) { return {0, 1, world - 1, world, world + 1, 1023}; }

std::vector<Reduction> unweighted() {
  std::vector<Reduction> some;
  for (const Reduction reduction : all_reductions)
    if (!is_weighted(reduction)) some.push_back(reduction);
  return some;
}

// The product of schedules, reductions, counts and in place or out; misalignments and roots rotate through
// it.
std::vector<Case> cases_for(uint32_t world, const std::vector<uint64_t>& counts) {
  std::vector<Case> cases;
  uint32_t turn = 0;
  for (const uint64_t count : counts) {
    for (const schedule::Schedule& schedule : schedule::catalogue()) {
      const auto operation = schedule.operation;
      const auto algorithm = schedule.algorithm;
      const auto add = [&](Reduction reduction, bool in_place, Rank root) {
        cases.push_back({operation, algorithm, reduction, count, in_place, turn++ % 3, root});
      };
      switch (operation) {
        case Operation::all_reduce:
        case Operation::reduce_scatter:
          for (const Reduction reduction : unweighted())
            for (const bool in_place : {false, true}) add(reduction, in_place, 0);
          break;
        case Operation::reduce:
          for (const Reduction reduction : unweighted()) {
            const bool in_place = turn % 2 == 0;
            add(reduction, in_place, turn % world);
          }
          break;
        case Operation::all_gather:
          for (const bool in_place : {false, true}) add(Reduction::sum, in_place, 0);
          break;
        case Operation::gather:
        case Operation::scatter:
          for (const bool in_place : {false, true}) add(Reduction::sum, in_place, turn % world);
          break;
        case Operation::all_to_all:
          cases.push_back({operation, algorithm, Reduction::sum, count * world, false, turn++ % 3, 0});
          break;
        case Operation::send_recv:
          for (Rank distance = 0; distance < world; distance += 2) add(Reduction::sum, false, distance);
          break;
        case Operation::broadcast:
          for (Rank root = 0; root < world; root += 3) add(Reduction::sum, true, root);
          break;
        case Operation::barrier:
          cases.push_back({operation, algorithm, Reduction::sum, 0, true, 0, 0});
          break;
      }
    }
  }
  return cases;
}

// All cases that f32 has. Fourteen times as many would say little more: of the others each type takes every
// operation, reduction and placement, but each of them at one count only, which rotates from case to case and
// from type to type, so that every type meets every count.
void run_all_types(World& world, const std::vector<Case>& cases) {
  run_cases<float>(world, cases);
  const auto once = [](const Case& c) {  // one of these per count
    return c.operation == Operation::barrier && c.algorithm == Algorithm::direct;
  };
  const auto counts = size_t(std::count_if(cases.begin(), cases.end(), once));
  const size_t per_count = cases.size() / counts;
  size_t type = 0;
  const auto run = [&]<class T>(T) {
    std::vector<Case> some;
    for (size_t k = 0; k < per_count; k++) some.push_back(cases[(k + type) % counts * per_count + k]);
    run_cases<T>(world, some);
    type++;
  };
  run(double()), run(float16()), run(bfloat16()), run(float8_e4m3()), run(float8_e5m2());
  run(int8_t()), run(uint8_t()), run(int16_t()), run(uint16_t());
  run(int32_t()), run(uint32_t()), run(int64_t()), run(uint64_t());
}

void run_small(SocketKind kind) {
  for (const uint32_t n : {1u, 2u, 3u, 5u, 7u, 8u}) {
    World world = World::over_sockets(n, kind);
    run_all_types(world, cases_for(n, small_counts(n)));
  }
}

constexpr LinkCaps tiny_caps{.slot_bytes = 256, .slots = 3};

}  // namespace

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
    run_all_types(world, cases_for(n, {0, 1, uint64_t(n) + 1, 1023}));
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
    run_all_types(world, cases_for(n, small_counts(n)));
  }
}

TEST_CASE("collectives over shared memory with few small slots and sleepers") {
  for (const uint32_t n : {2u, 3u, 8u}) {
    World world = World::over_shm(n, {.slot_bytes = 64, .slots = 2});
    for (Rank rank = 0; rank < n; rank++)
      world.waiter(rank).set_budget({});  // sleep as soon as nothing moves
    run_all_types(world, cases_for(n, {uint64_t(n) + 1, 1023}));
  }
}

TEST_CASE("collectives over shared memory from and to memory that is lent") {
  for (const uint32_t n : {2u, 3u, 5u, 8u}) {
    for (const shm::Sizes& sizes : {shm::Sizes{}, {.slot_bytes = 256, .slots = 3}}) {
      World world = World::over_lent_shm(n, sizes, 1);
      for (Rank rank = 0; rank < n && sizes.slots == 3; rank++) world.waiter(rank).set_budget({});
      run_all_types(world, cases_for(n, {1, uint64_t(n) + 1, 1023}));
      CHECK(world.bytes_referred() > 0);
    }
  }
}

TEST_CASE("collectives over shared memory from private memory that is pulled") {
  for (const shm::Sizes& sizes : {shm::Sizes{}, {.slot_bytes = 256, .slots = 3}}) {
    World world = World::over_pulled_shm(sizes, 1);
    for (Rank rank = 0; rank < 2 && sizes.slots == 3; rank++) world.waiter(rank).set_budget({});
    run_all_types(world, cases_for(2, {1, 3, 1023}));
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
  for (const SocketKind kind : {SocketKind::tcp4_tiny, SocketKind::unix_tiny, SocketKind::tls_tiny}) {
    World world = World::over_sockets(4, kind);
    run_cases<float>(world,
                     {{Operation::all_reduce, Algorithm::direct, Reduction::sum, 300'000, true, 0, 0},
                      {Operation::all_reduce, Algorithm::ring, Reduction::sum, 300'000, true, 0, 0},
                      {Operation::reduce_scatter, Algorithm::ring, Reduction::max, 300'000, false, 1, 0},
                      {Operation::all_gather, Algorithm::ring, Reduction::sum, 300'000, false, 1, 0}});
  }
}

TEST_CASE("collectives with slots so small that every call has many windows") {
  for (const uint32_t n : {2u, 3u, 5u, 8u}) {
    World world = World::over_sockets(n, SocketKind::tcp4, {.slot_bytes = 64, .slots = 2, .call_bytes = 100});
    run_all_types(world, cases_for(n, {uint64_t(n) + 1, 1023}));
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
