// What docs/numerics.md promises, by values for which a naive implementation gives something else: for every operation that
// reduces x algorithm x transport x type, over 1, 2, 3 and 8 ranks. Every chunk of a vector has every promise with
// its values on every rank. In place and out, misalignments and roots take turns.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>
#include <mutex>

#include "reductions.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

// ---- Promises

// Some ranks have `first`, the rest `others`.
template <class T>
struct Promise {
  Reduction reduction;
  std::vector<T> first;
  T others, expected;
};
template <class T>
using Promises = std::vector<Promise<T>>;

template <class T>
T bits(uint64_t f64, uint32_t f32, uint32_t f16, uint32_t bf16, uint32_t f8e4m3, uint32_t f8e5m2) {
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(f64);
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(f32);
  if constexpr (is_narrow<T>) {
    const DataType type = data_type_of<T>;
    return T::from_bits(typename T::Bits(type == DataType::f16      ? f16
                                         : type == DataType::bf16   ? bf16
                                         : type == DataType::f8e4m3 ? f8e4m3
                                                                    : f8e5m2));
  }
}

template <class T>
Promises<T> of_floats(uint32_t world) {
  using A = Accumulator<T>;
  constexpr bool has_infinity = !std::is_same_v<T, float8_e4m3>, is_bf16 = std::is_same_v<T, bfloat16>;
  const T nan = bits<T>(0x7ff8000000000000, 0x7fc00000, 0x7fff, 0x7fff, 0x7f, 0x7f);
  const T odd_nan = bits<T>(0xfff0000000000001, 0xff800001, 0xfc01, 0xff81, 0xff, 0xfd);
  const T largest = bits<T>(0x7fefffffffffffff, 0x7f7fffff, 0x7bff, 0x7f7f, 0x7e, 0x7b);
  const T tiny = bits<T>(1, 1, 1, 1, 1, 1), minus_tiny = T(-Accumulator<T>(tiny));
  const T zero(0.f), minus_zero(-0.f), one(1.f), two(2.f), half(0.5f), minus_one(-1.f);
  const T infinity = has_infinity ? T(std::numeric_limits<float>::infinity()) : nan;
  const T minus_infinity = has_infinity ? T(-std::numeric_limits<float>::infinity()) : odd_nan;
  const T beyond = infinity;  // what is too large
  using enum Reduction;
  Promises<T> all{
      {sum, {infinity, minus_infinity}, one, nan},
      {avg, {infinity, minus_infinity}, one, nan},
      {prod, {zero, infinity}, one, nan},
      {sum, {infinity}, one, infinity},
      {min, {minus_infinity}, one, has_infinity ? minus_infinity : nan},
      {max, {infinity}, one, infinity},
      {sum, {largest, largest}, zero, beyond},
      // Zeros and the smallest numbers.
      {sum, {}, minus_zero, minus_zero},
      {avg, {}, minus_zero, minus_zero},
      {sum, {minus_zero}, zero, world == 1 ? minus_zero : zero},
      {prod, {minus_zero}, one, minus_zero},
      {min, {minus_zero}, zero, minus_zero},
      {max, {zero}, minus_zero, zero},
      {sum, {tiny}, zero, tiny},
      {min, {tiny}, one, tiny},
      {max, {minus_tiny}, minus_one, minus_tiny},
      // One division at the end.
      {avg, {}, tiny, tiny},
      {avg, {T(5.f)}, one, T(A(world + 4) / A(world))},
      {avg, {}, largest, world == 1 || (is_narrow<T> && !is_bf16) ? largest : infinity},
  };
  for (const Reduction reduction : {sum, prod, min, max, avg})
    all.push_back({reduction, {odd_nan}, one, nan});
  // A number comes before NaN.
  all.push_back({min_num, {odd_nan}, one, world == 1 ? nan : one});
  all.push_back({max_num, {odd_nan}, one, world == 1 ? nan : one});
  all.push_back({min_num, {largest}, odd_nan, largest});
  all.push_back({max_num, {minus_zero}, odd_nan, minus_zero});
  for (const Reduction reduction : {min_num, max_num}) all.push_back({reduction, {}, odd_nan, nan});
  if constexpr (is_narrow<T>) {
    // One more than this is lost where every addition is rounded.
    const auto big = float(bits<T>(0, 0, 0x6800, 0x4380, 0x58, 0x48));
    all.push_back({sum, {T(big)}, one, T(big + float(world - 1))});
    const T minus_largest = T(-float(largest));
    if (!is_bf16) all.push_back({sum, {largest, largest, minus_largest}, zero, largest});
    if (!is_bf16) all.push_back({prod, {largest, two, half}, one, largest});
  }
  return all;
}

template <class T>
Promises<T> of_integers(uint32_t world) {
  constexpr T largest = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
  constexpr T ones = T(-1), few = T(0x5a), top = T(T(1) << (8 * sizeof(T) - 1));
  constexpr T zero(0), one(1);
  using enum Reduction;
  Promises<T> all{
      {sum, {largest, one}, zero, least},
      {sum, {}, largest, T(int128(largest) * world)},
      {sum, {T(120), T(100)}, zero, T(220)},  // in i8 -36
      {prod, {largest, T(2)}, one, T(int128(largest) * 2)},
      {prod, {largest, largest}, one, one},
      {min, {least}, largest, least},
      {max, {largest}, least, largest},
      {min_num, {least}, largest, least},
      {max_num, {largest}, least, largest},
      {avg, {}, largest, largest},
      {avg, {}, least, least},
      {avg, {T(3)}, T(4), T(3)},
      {avg, {T(3)}, one, T((world + 2) / world)},
      {bit_and, {few}, ones, few},
      {bit_or, {one, top}, zero, T(top | 1)},
      {bit_xor, {top, T(3)}, zero, T(top ^ 3)},
  };
  if constexpr (std::is_signed_v<T>) all.push_back({avg, {T(-3)}, T(-4), T(-3)});
  return all;
}

// Those of one reduction that so many ranks have room for.
template <class T>
Promises<T> promises(uint32_t world, Reduction reduction) {
  Promises<T> all;
  if constexpr (std::is_integral_v<T>)
    all = of_integers<T>(world);
  else
    all = of_floats<T>(world);
  std::erase_if(all, [&](const auto& one) { return one.reduction != reduction || one.first.size() > world; });
  return all;
}

// Element i is promise i / world, whose first value rank i % world has.
template <class T>
void check_promises(Communicator& comm, const Schedule& schedule, size_t turn) {
  const uint32_t world = comm.world();
  for (const Reduction reduction : all_reductions) {
    const auto all = promises<T>(world, reduction);
    if (all.empty()) continue;
    const auto promise = [&](size_t i) -> const Promise<T>& { return all[i / world % all.size()]; };
    const auto own = [&](size_t i) {
      const size_t place = (comm.rank() + world - i % world) % world;
      return place < promise(i).first.size() ? promise(i).first[place] : promise(i).others;
    };
    const auto expected = [&](size_t i) { return promise(i).expected; };
    const size_t count = all.size() * world * world;
    const auto wrong = wrong_of<T>(comm, schedule, reduction, count, turn++, own, expected);
    CHECK_MESSAGE(wrong == 0, text<T>(schedule, reduction, comm));
  }
}

// ---- Weights

// Of an average; ranks of weight 0 have NaN.
template <class T>
void check_average(Communicator& comm, const Schedule& schedule, size_t turn) {
  using A = Accumulator<T>;
  const auto weight = [](Rank rank) { return A((rank + 2) % 3); };
  const auto value = [](Rank rank, size_t i) { return A((rank + i) % 7); };
  const Rank rank = comm.rank();
  const auto own = [&](size_t i) {
    return T(weight(rank) == 0 ? std::numeric_limits<float>::quiet_NaN() : float(value(rank, i)));
  };
  const auto expected = [&](size_t i) {
    A sum = 0, weights = 0;
    for (Rank r = 0; r < comm.world(); r++) sum += weight(r) * value(r, i), weights += weight(r);
    return T(sum / weights);
  };
  const auto reduction = Reduction::weighted_avg;
  auto wrong = wrong_of<T>(comm, schedule, reduction, 65, turn, own, expected, double(weight(rank)));
  const auto zero = [](size_t) { return T(0.f); };
  wrong += wrong_of<T>(comm, schedule, reduction, 9, turn + 1, own, zero, 0);
  CHECK_MESSAGE(wrong == 0, text<T>(schedule, reduction, comm));
}

// Of integers from near the largest, so that they wrap.
template <class T>
void check_premultiplied(Communicator& comm, const Schedule& schedule, size_t turn) {
  const auto weight = [](Rank rank) { return Exact<T>(rank % 4) - 1; };
  const auto value = [](Rank rank, size_t i) {
    if constexpr (std::is_integral_v<T>) return T(std::numeric_limits<T>::max() - T((rank + i) % 5));
    return T(float((rank + i) % 7 + 1));
  };
  const auto own = [&](size_t i) { return value(comm.rank(), i); };
  const auto expected = [&](size_t i) {
    Exact<T> sum{};
    for (Rank r = 0; r < comm.world(); r++) sum += weight(r) * exact(value(r, i));
    return rounded<T>(sum);
  };
  const auto reduction = Reduction::premul_sum;
  const auto wrong =
      wrong_of<T>(comm, schedule, reduction, 65, turn, own, expected, double(weight(comm.rank())));
  CHECK_MESSAGE(wrong == 0, text<T>(schedule, reduction, comm));
}

// ---- Orders

// Values whose sums depend on the order.
template <class T>
T awkward(Rank rank, size_t i) {
  const uint32_t hash = uint32_t((i + 1) * 2654435761u) ^ uint32_t((rank + 1) * 0x85ebca6bu);
  return T(std::ldexp(float(int32_t(hash | 1)) / 3.f, int(hash >> 27) - 54));
}
template <class T>
Accumulator<T> canonical_sum(Rank first, uint32_t ranks, size_t i) {
  if (ranks == 1) return Accumulator<T>(awkward<T>(first, i));
  const uint32_t left = std::bit_floor(ranks - 1);
  return canonical_sum<T>(first, left, i) + canonical_sum<T>(first + left, ranks - left, i);
}

template <class T>
void check_canonical(Communicator& comm, const Schedule& schedule, size_t turn) {
  const uint32_t world = comm.world();
  const auto own = [&](size_t i) { return awkward<T>(comm.rank(), i); };
  for (const Reduction reduction : {Reduction::sum, Reduction::avg}) {
    const auto expected = [&](size_t i) {
      const auto sum = canonical_sum<T>(0, world, i);
      return T(reduction == Reduction::avg ? sum / Accumulator<T>(world) : sum);
    };
    const auto wrong = wrong_of<T>(comm, schedule, reduction, 1023, turn++, own, expected, 1, true);
    CHECK_MESSAGE(wrong == 0, text<T>(schedule, reduction, comm));
  }
}

template <class T>
std::vector<T> awkward_vector(Rank rank, size_t count) {
  std::vector<T> data(count);
  for (size_t i = 0; i < count; i++) data[i] = awkward<T>(rank, i);
  return data;
}

// As a group of vectors of 0, 1, 2, .. elements.
template <class T>
void check_canonical_group(Communicator& comm) {
  std::vector<T> data = awkward_vector<T>(comm.rank(), 1023), expected(1023);
  for (size_t i = 0; i < 1023; i++) expected[i] = T(canonical_sum<T>(0, comm.world(), i));
  std::vector<Tensor> vectors;
  for (size_t first = 0, n = 0; first < 1023; first += n++)
    vectors.push_back({&data[first], &data[first], std::min(n, 1023 - first)});
  CHECK(comm.all_reduce_group(vectors, data_type_of<T>, Reduction::sum,
                              {.timeout = {}, .weight = 1, .reproducible = true})
            .ok());
  CHECK(std::memcmp(data.data(), expected.data(), 1023 * sizeof(T)) == 0);
}

constexpr uint32_t worlds[] = {1, 2, 3, 8};
bool any(const Schedule&) { return true; }
bool is_canonical(const Schedule& schedule) { return schedule.canonical; }

}  // namespace

TEST_CASE("numbers: NaN, infinity, zeros, limits, wrapping and rounding, everywhere") {
  for (const uint32_t world : worlds)
    on_both_transports(world, [](Communicator& comm) {
      for_each_reducing(any, [&](const Schedule& schedule, size_t turn) {
        for_each_type([&]<class T>(T) { check_promises<T>(comm, schedule, turn++); });
      });
    });
}

TEST_CASE("numbers: weighted averages and premultiplied sums, everywhere") {
  for (const uint32_t world : worlds)
    on_both_transports(world, [](Communicator& comm) {
      for_each_reducing(at_once, [&](const Schedule& schedule, size_t turn) {
        for_each_float([&]<class T>(T) { check_average<T>(comm, schedule, turn++); });
        for_each_type([&]<class T>(T) { check_premultiplied<T>(comm, schedule, turn++); });
      });
    });
}

TEST_CASE("numbers: weights are added in 64 bits, in the order of the ranks") {
  on_both_transports(4, [](Communicator& comm) {
    // 2^53 + 1 is 2^53 each time; 1 + 1 first would make 2^53 + 2. In f32 the weights would be 2^53 anyway.
    double mean = comm.rank() == 0 ? 1 : 0;
    CHECK(comm.all_reduce(std::span(&mean, 1), Reduction::weighted_avg,
                          {.timeout = {}, .weight = comm.rank() == 0 ? 0x1p53 : 1.})
              .ok());
    CHECK(mean == 1);
    // Rank 1 has no weight, so (2 + 3) is a node of the tree: (1e8 + -1e8) + 1, not (1e8 + 0) + (-1e8 + 1).
    const float values[] = {1e8f, 5, -1e8f, 1};
    float sum = values[comm.rank()];
    CHECK(comm.all_reduce(std::span(&sum, 1), Reduction::weighted_avg,
                          {.timeout = {}, .weight = comm.rank() == 1 ? 0. : 1.})
              .ok());
    CHECK(sum == 1.f / 3);
  });
}

TEST_CASE("numbers: reproducible sums have the bits of the canonical tree, everywhere") {
  for (const uint32_t world : worlds)
    on_both_transports(world, [](Communicator& comm) {
      for_each_reducing(is_canonical, [&](const Schedule& schedule, size_t turn) {
        for_each_float([&]<class T>(T) { check_canonical<T>(comm, schedule, turn++); });
      });
      for_each_float([&]<class T>(T) { check_canonical_group<T>(comm); });
    });
}

TEST_CASE("numbers: every rank has the same bits, and the same call gives them again, in another job too") {
  for (const uint32_t world : {3u, 8u}) {
    std::mutex mutex;
    std::map<std::string, std::vector<float>> first;
    for (int job = 0; job < 2; job++)
      on_both_transports(world, [&](Communicator& comm) {
        for (const Schedule& schedule : schedule::catalogue()) {
          if (schedule.operation != Operation::all_reduce) continue;
          for (int again = 0; again < 3; again++) {
            auto data = awkward_vector<float>(comm.rank(), 10'007);
            CHECK(comm.all_reduce(std::span(data), Reduction::sum,
                                  {.timeout = {}, .weight = 1, .algorithm = name_of(schedule.algorithm)})
                      .ok());
            // Of every rank, transport and job; of hierarchical the nodes are other ones over shm.
            std::string key(name_of(schedule.algorithm));
            if (schedule.algorithm == Algorithm::hierarchical) key += comm.transport();
            const std::lock_guard lock(mutex);
            const auto& before = first.try_emplace(key, data).first->second;
            CHECK(std::memcmp(before.data(), data.data(), data.size() * sizeof(float)) == 0);
          }
        }
      });
    CHECK(first["ring"] != first["direct"]);  // the order is another one, and it shows
  }
}

TEST_CASE("numbers: a hundred jobs, one after another, give the same bits") {
  const uint32_t world = 3;
  std::mutex mutex;
  std::vector<float> first;
  for (int job = 0; job < 50; job++)
    on_both_transports(world, [&](Communicator& comm) {
      auto data = awkward_vector<float>(comm.rank(), 10'007);
      CHECK(comm.all_reduce(std::span(data), Reduction::sum, {.timeout = {}, .reproducible = true}).ok());
      const std::lock_guard lock(mutex);
      if (first.empty()) first = data;
      CHECK(std::memcmp(first.data(), data.data(), data.size() * sizeof(float)) == 0);
    });
}
