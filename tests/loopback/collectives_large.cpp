// Vectors of 1 Mi + 1 elements, many windows on every link: every operation x algorithm x world x transport.
//
// Of each such four there is one case here. A world has four data sets, each a type and a reduction; together
// the worlds have all types and all reductions. Schedule k of the catalogue takes data set k % 4 of its world
// over sockets and the next one over shared memory. From every fourth schedule to the next, from one world to
// the next and from one transport to the other, in place and out of place take turns, and what has a root or
// a distance takes another one. Misalignments of 0, 1 and 2 bytes rotate with schedules and worlds.
#include "cases.hpp"

namespace rondo::test {
namespace {

constexpr uint64_t count = (1 << 20) + 1;

// Of schedule k; `turn` numbers the worlds.
Case large_case(const schedule::Schedule& schedule, uint32_t world, Reduction reduction, size_t k,
                size_t turn, size_t transport) {
  Case c{.operation = schedule.operation,
         .algorithm = schedule.algorithm,
         .reduction = reduction,
         .count = count,
         .in_place = (k / 4 + turn + transport) % 2 == 0,
         .offset = (k + turn) % 3,
         .root = 0};
  switch (schedule.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::all_gather:
      break;
    case Operation::reduce:
    case Operation::gather:
    case Operation::scatter:
      c.root = Rank((k + turn + transport) % world);
      break;
    case Operation::broadcast:
      c.in_place = true;
      c.root = Rank((k + turn + transport) % world);
      break;
    case Operation::send_recv:  // over a distance; 0 is to itself
      c.in_place = false;
      c.root = world == 1 ? 0 : Rank(1 + (turn + transport) % (world - 1));
      break;
    case Operation::all_to_all:  // equal parts
      c.in_place = false;
      c.count = (count + world - 1) / world * world;
      break;
    case Operation::barrier:
      c.count = 0;
      break;
  }
  return c;
}

// The worlds of one size and what they have run.
struct Large {
  size_t turn;
  World transports[2];
  size_t data_set = 0, cases = 0;

  Large(uint32_t world, size_t its_turn)
      : turn(its_turn), transports{World::over_sockets(world, SocketKind::tcp4), World::over_shm(world)} {}

  // The next data set.
  template <class T>
  void run(Reduction reduction) {
    const uint32_t world = transports[0].size();
    DataSets<T> data;
    data.try_emplace(reduction, world, count + world, reduction);
    const auto catalogue = schedule::catalogue();
    for (size_t transport = 0; transport < 2; transport++) {
      std::vector<Case> some;
      for (size_t k = 0; k < catalogue.size(); k++)
        if ((k + transport) % 4 == data_set)
          some.push_back(large_case(catalogue[k], world, reduction, k, turn, transport));
      run_cases<T>(transports[transport], some, data);
      cases += some.size();
    }
    data_set++;
  }
  void check_all_ran() const { CHECK(cases == 2 * schedule::catalogue().size()); }
};

}  // namespace

TEST_CASE("collectives: 1 Mi + 1 elements, every operation and algorithm, 8 ranks") {
  Large large(8, 0);
  large.run<float>(Reduction::avg);
  large.run<float8_e4m3>(Reduction::sum);
  large.run<int16_t>(Reduction::bit_xor);
  large.run<int64_t>(Reduction::avg);
  large.check_all_ran();
}
TEST_CASE("collectives: 1 Mi + 1 elements, every operation and algorithm, 7 ranks") {
  Large large(7, 1);
  large.run<bfloat16>(Reduction::sum);
  large.run<uint8_t>(Reduction::min);
  large.run<uint32_t>(Reduction::bit_and);
  large.run<double>(Reduction::prod);
  large.check_all_ran();
}
TEST_CASE("collectives: 1 Mi + 1 elements, every operation and algorithm, 5 ranks") {
  Large large(5, 2);
  large.run<int8_t>(Reduction::avg);
  large.run<int32_t>(Reduction::sum);
  large.run<float16>(Reduction::max);
  large.run<float8_e5m2>(Reduction::sum);
  large.check_all_ran();
}
TEST_CASE("collectives: 1 Mi + 1 elements, every operation and algorithm, 3 ranks") {
  Large large(3, 3);
  large.run<uint16_t>(Reduction::bit_or);
  large.run<uint64_t>(Reduction::avg);
  large.run<bfloat16>(Reduction::avg);
  large.run<float>(Reduction::prod);
  large.check_all_ran();
}
TEST_CASE("collectives: 1 Mi + 1 elements, every operation and algorithm, 2 ranks") {
  Large large(2, 4);
  large.run<float16>(Reduction::avg);
  large.run<int64_t>(Reduction::max);
  large.run<float8_e4m3>(Reduction::min);
  large.run<uint32_t>(Reduction::sum);
  large.check_all_ran();
}
TEST_CASE("collectives: 1 Mi + 1 elements, every operation and algorithm, one rank") {
  Large large(1, 5);
  large.run<double>(Reduction::avg);
  large.run<uint8_t>(Reduction::sum);
  large.run<uint64_t>(Reduction::bit_xor);
  large.run<float>(Reduction::min);
  large.check_all_ran();
}

}  // namespace rondo::test
