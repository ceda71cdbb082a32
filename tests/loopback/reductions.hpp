// Every operation that reduces, as the matrix of numbers calls it: by schedule and type, in place and out, misaligned.
#pragma once
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "ranks.hpp"
#include "reference.hpp"
#include "schedule/catalogue.hpp"

namespace rondo::test {

using schedule::Algorithm;
using schedule::Operation;
using schedule::Schedule;

template <class Run>
void for_each_float(const Run& run) {
  run(double()), run(float()), run(float16()), run(bfloat16()), run(float8_e4m3()), run(float8_e5m2());
}
template <class Run>
void for_each_type(const Run& run) {
  for_each_float(run);
  run(int8_t()), run(uint8_t()), run(int16_t()), run(uint16_t());
  run(int32_t()), run(uint32_t()), run(int64_t()), run(uint64_t());
}

// Over TCP as two nodes, and in one memory.
inline void on_both_transports(uint32_t world, const std::function<void(Communicator&)>& body) {
  for (const char* transport : {"tcp", "shm"}) {
    auto options = options_of_ranks(world);
    for (Options& own : options) {
      own.transport = transport;
      if (own.transport == "tcp") own.node = *own.rank * 2 / world;
    }
    on_ranks(options, body);
  }
}

inline bool at_once(const Schedule& schedule) {
  return schedule.algorithm == Algorithm::direct || schedule.algorithm == Algorithm::one_shot;
}

template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
constexpr bool is_narrow = !std::is_arithmetic_v<T>;

// ---- Calls

template <class T>
using Values = std::function<T(size_t i)>;

// Any operation that reduces, with this rank's elements; the number of elements that are not, to the bit, as expected.
template <class T>
uint64_t wrong_of(Communicator& comm, const Schedule& schedule, Reduction reduction, size_t count,
                  size_t turn, const Values<T>& own, const Values<T>& expected, double weight = 1,
                  bool reproducible = false) {
  const CallOptions options{.timeout = {},
                            .weight = weight,
                            .algorithm = name_of(schedule.algorithm),
                            .reproducible = reproducible};
  const auto type = data_type_of<T>;
  const Rank root = Rank(turn % comm.world());
  Extent mine{0, count};
  if (schedule.operation == Operation::reduce_scatter) mine = comm.shard(count);
  if (schedule.operation == Operation::reduce && comm.rank() != root) mine.count = 0;
  const bool in_place = turn % 2 == 0 && (mine.count > 0 || schedule.operation != Operation::reduce);
  Guarded<T> input(count, turn % 3), apart(in_place ? 0 : mine.count, turn % 5);
  for (size_t i = 0; i < count; i++) input.set(i, own(i));
  std::byte* const out = in_place ? input.data() + mine.first * sizeof(T) : apart.data();
  const auto done = schedule.operation == Operation::all_reduce
                        ? comm.all_reduce(input.data(), out, count, type, reduction, options)
                    : schedule.operation == Operation::reduce
                        ? comm.reduce(input.data(), out, count, type, reduction, root, options)
                        : comm.reduce_scatter(input.data(), out, count, type, reduction, options);
  if (!done) {
    MESSAGE(done.error().message);
    return 1;
  }
  uint64_t wrong = !input.intact() + !apart.intact();
  for (size_t i = 0; i < mine.count; i++) {
    const T right = expected(mine.first + i);
    wrong += std::memcmp(out + i * sizeof(T), &right, sizeof(T)) != 0;
  }
  return wrong;
}

template <class T>
std::string text(const Schedule& schedule, Reduction reduction, Communicator& comm) {
  return fmt::format("{} {} {} {} {} ranks {}", name_of(schedule.algorithm), name_of(schedule.operation),
                     name_of(data_type_of<T>), name_of(reduction), comm.world(), comm.transport());
}

template <class Fits, class Run>
void for_each_reducing(const Fits& fits, const Run& run) {
  size_t turn = 0;
  for (const Schedule& schedule : schedule::catalogue())
    if (schedule::reduces(schedule.operation) && fits(schedule)) run(schedule, turn++);
}

}  // namespace rondo::test
