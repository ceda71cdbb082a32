// What a random program is made of: dice that fall alike on every rank, and a model of everybody's data.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <random>
#include <string>

#include "../loopback/reference.hpp"
#include "rondo/communicator.hpp"

namespace rondo::test {

// The same numbers on every rank; <random>'s distributions may differ between libraries.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  uint64_t below(uint64_t n) { return engine_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

// An operation that has been started: what it ends with, and then the number of wrong elements.
struct Started {
  std::string what;
  std::function<Result<void>()> wait;
  std::function<uint64_t()> wrong;
  bool has_failed = false;  // already, when it was started
};

inline size_t small_count(Dice& dice, uint32_t world, size_t) {
  const size_t counts[] = {0, 1, world - 1, world, world + 1, 1023};
  if (dice.one_in(20)) return 70'000 + dice.below(1000);
  return dice.one_in(2) ? counts[dice.below(6)] : dice.below(3000);
}

template <class T>
Reduction any_reduction(Dice& dice) {
  while (true) {
    const Reduction reduction = all_reductions[dice.below(all_reductions.size())];
    if (is_defined(data_type_of<T>, reduction)) return reduction;
  }
}

// Element i of a rank's data in this operation; weighted ones have the numbers of a sum.
template <class T>
struct Model {
  Reduction reduction;
  uint64_t salt;
  uint32_t world;

  Reduction kind() const { return is_weighted(reduction) ? Reduction::sum : reduction; }
  static double weight(Rank rank) { return double((rank * 5 + 2) % 4); }  // 2 3 0 1 2 ...
  T at(Rank rank, uint64_t i) const { return element<T>(rank, i + salt, kind()); }
  T reduced(uint64_t i) const {
    if (!is_weighted(reduction)) return test::reduced<T>(world, i + salt, reduction);
    Exact<T> sum{}, weights{};
    for (Rank rank = 0; rank < world; rank++) {
      sum += Exact<T>(weight(rank)) * exact(at(rank, i));
      weights += Exact<T>(weight(rank));
    }
    if (reduction == Reduction::premul_sum) return rounded<T>(sum);
    if constexpr (std::is_same_v<T, double>)
      return sum / weights;
    else
      return weights == 0 ? T(0) : T(float(sum) / float(weights));
  }
};

// One rank's buffers of an operation: `in` elements of the whole vector from in_first on are its input.
template <class T>
struct Buffers {
  Buffers(Dice& dice, size_t in, size_t out)
      : input(in, dice.below(4)), output(out, dice.below(4)), in_count(in), out_count(out) {}
  Guarded<T> input, output;
  size_t in_count, out_count;

  uint64_t wrong(const std::function<T(size_t)>& expected, const std::function<T(size_t)>& given) {
    uint64_t n = !input.intact() + !output.intact();
    for (size_t i = 0; i < out_count; i++) {
      const T got = output.get(i), right = expected(i);
      n += std::memcmp(&got, &right, sizeof(T)) != 0;
    }
    for (size_t i = 0; i < in_count; i++) {
      const T got = input.get(i), right = given(i);
      n += std::memcmp(&got, &right, sizeof(T)) != 0;
    }
    return n;
  }
};

}  // namespace rondo::test
