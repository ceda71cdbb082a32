// The hierarchical algorithms over several nodes, equal and uneven ones, in order and mixed.
#include "cases.hpp"

namespace rondo::test {
namespace {

using Nodes = std::vector<uint32_t>;  // of every rank

const std::vector<Nodes> node_maps{{0, 1},
                                   {0, 1, 1},
                                   {0, 1, 0},
                                   {0, 1, 2},
                                   {0, 0, 1, 1, 2},
                                   {4, 4, 4, 4, 1},
                                   {0, 1, 0, 1, 2, 2, 0},
                                   {0, 0, 0, 0, 1, 1, 1, 1},
                                   {7, 2, 2, 5, 2, 5, 2, 0}};

// Over sockets and over shared memory.
template <class Run>
void on_each_transport(const Nodes& nodes, const Run& run) {
  const auto world = uint32_t(nodes.size());
  World transports[] = {World::over_sockets(world, SocketKind::tcp4), World::over_shm(world)};
  for (World& ranks : transports) {
    CAPTURE(fmt::format("{}", fmt::join(nodes, " ")));
    ranks.spread(nodes);
    run(ranks);
  }
}

// Every operation that has the algorithm, in place and out where there are both.
std::vector<Case> large_cases(uint32_t world, Reduction reduction) {
  const uint64_t count = (1 << 20) + 1;
  const auto algorithm = Algorithm::hierarchical;
  std::vector<Case> cases;
  for (const bool in_place : {false, true}) {
    const size_t offset = in_place ? 0 : 1;
    const Rank root = in_place ? world - 1 : world / 2;
    cases.push_back({Operation::all_reduce, algorithm, reduction, count, in_place, offset, 0});
    cases.push_back({Operation::reduce_scatter, algorithm, reduction, count, in_place, offset, 0});
    cases.push_back({Operation::all_gather, algorithm, reduction, count, in_place, offset, 0});
    cases.push_back({Operation::reduce, algorithm, reduction, count, in_place, offset, root});
    cases.push_back({Operation::broadcast, algorithm, reduction, count, true, offset, root});
  }
  return cases;
}

uint64_t payload_sent(World& world) {
  uint64_t bytes = 0;
  for (Rank rank = 0; rank < world.size(); rank++) bytes += world.engine(rank).counters().payload_bytes_sent;
  return bytes;
}

}  // namespace

TEST_CASE("collectives over nodes: every type and reduction, small counts") {
  for (const Nodes& nodes : node_maps)
    on_each_transport(nodes, [](World& world) {
      run_all_types(world, small_counts(world.size()), Algorithm::hierarchical);
    });
}

TEST_CASE("collectives over nodes: every root") {
  for (const Nodes& nodes : node_maps)
    on_each_transport(nodes, [](World& world) {
      std::vector<Case> cases;
      for (Rank root = 0; root < world.size(); root++)
        for (const Operation operation : {Operation::reduce, Operation::broadcast})
          for (const uint64_t count : {1, 1023})
            cases.push_back({operation, Algorithm::hierarchical, Reduction::sum, count, true, 0, root});
      run_cases<bfloat16>(world, cases);
    });
}

TEST_CASE("collectives over nodes: slots so small that every call has many windows") {
  for (const Nodes& nodes : node_maps) {
    World world = World::over_sockets(uint32_t(nodes.size()), SocketKind::tcp4,
                                      {.slot_bytes = 64, .slots = 2, .call_bytes = 100});
    CAPTURE(fmt::format("{}", fmt::join(nodes, " ")));
    world.spread(nodes);
    const auto cases = cases_for(world.size(), {1023}, Algorithm::hierarchical);
    run_cases<float>(world, cases);
    run_cases<bfloat16>(world, cases);
    run_cases<int16_t>(world, cases);
  }
}

TEST_CASE("collectives over nodes: 1 Mi + 1 elements") {
  on_each_transport({0, 0, 1, 1, 2},
                    [](World& world) { run_cases<float>(world, large_cases(world.size(), Reduction::sum)); });
  on_each_transport({0, 1, 0, 1, 2, 2, 0}, [](World& world) {
    run_cases<bfloat16>(world, large_cases(world.size(), Reduction::avg));
  });
  on_each_transport(
      {0, 1, 1}, [](World& world) { run_cases<int32_t>(world, large_cases(world.size(), Reduction::max)); });
}

// Between nodes an all-reduce is a ring of nodes, whose first half carries sums, 4 bytes wide:
// 4 (G-1) + 2 (G-1) bytes for an element; inside each of the G nodes of s ranks it goes to its leader and comes
// back: 2 * 2 (s-1). On one node nothing would be wide.
TEST_CASE("payload counters: a hierarchical all-reduce of bf16 is wide between nodes only") {
  const uint64_t count = 1023;
  for (const Nodes& nodes :
       {Nodes{0, 0, 1, 1}, Nodes{1, 0, 1, 0, 1, 0}, Nodes{0, 0, 0, 0, 1, 1, 1, 1}, Nodes{0, 1, 2, 0, 1, 2}}) {
    World world = World::over_sockets(uint32_t(nodes.size()), SocketKind::unix_pair);
    world.spread(nodes);
    run_cases<bfloat16>(
        world, {{Operation::all_reduce, Algorithm::hierarchical, Reduction::sum, count, true, 0, 0}});
    const uint64_t groups = *std::ranges::max_element(nodes) + 1, size = nodes.size() / groups;
    CHECK(payload_sent(world) == count * (6 * (groups - 1) + groups * 4 * (size - 1)));
  }
}

}  // namespace rondo::test
