// What a random program is made of: dice that fall alike on every rank, and a model of everybody's data.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "../loopback/reference.hpp"
#include "rondo/communicator.hpp"
#include "rondo/memory.hpp"

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

// Element i of a rank's data in this operation; weighted ones have the numbers of a sum. Of floats one of 64 elements
// is NaN on one rank, and in averages all are on ranks of weight 0, which must not be seen.
template <class T>
struct Model {
  Reduction reduction;
  uint64_t salt;
  uint32_t world;

  Reduction kind() const { return is_weighted(reduction) ? Reduction::sum : reduction; }
  // -1 to 2; of an average 0 to 3, or all 0.
  double weight(Rank rank) const {
    const auto weight = double((rank * 5 + salt) % 4);
    if (reduction == Reduction::weighted_avg) return salt % 11 == 0 ? 0 : weight;
    return weight - 1;
  }
  bool is_unseen(Rank rank) const { return reduction == Reduction::weighted_avg && weight(rank) == 0; }
  static constexpr bool has_nan = !std::is_integral_v<T>;
  // The one that results are, and another one.
  static T nan() { return T(std::numeric_limits<float>::quiet_NaN()); }
  static T odd_nan() {
    if constexpr (std::is_arithmetic_v<T>)
      return -nan();
    else
      return T::from_bits(nan().bits | typename T::Bits(1u << (8 * sizeof(T) - 1)));
  }
  bool is_nan(Rank rank, uint64_t i) const {
    return has_nan && (is_unseen(rank) || ((i + salt) % 64 == 7 && rank == (salt + i / 64) % world));
  }
  T at(Rank rank, uint64_t i) const {
    if constexpr (has_nan)
      if (is_nan(rank, i)) return odd_nan();
    return element<T>(rank, i + salt, kind());
  }
  T reduced(uint64_t i) const {
    if (reduction == Reduction::min_num || reduction == Reduction::max_num) return extreme_number(i);
    if constexpr (has_nan)
      for (Rank rank = 0; rank < world; rank++)
        if (is_nan(rank, i) && !is_unseen(rank)) return nan();
    const T result = is_weighted(reduction) ? weighted(i) : test::reduced<T>(world, i + salt, reduction);
    if constexpr (has_nan)
      if (exact(result) != exact(result)) return nan();  // too large for float8_e4m3
    return result;
  }
  T extreme_number(uint64_t i) const {
    std::optional<T> best;
    for (Rank rank = 0; rank < world; rank++) {
      if (is_nan(rank, i)) continue;
      const T own = at(rank, i);
      if (!best ||
          (exact(own) != exact(*best) && (exact(own) < exact(*best)) == (reduction == Reduction::min_num)))
        best = own;
    }
    if constexpr (has_nan) return best.value_or(nan());
    return *best;
  }
  T weighted(uint64_t i) const {
    bool begun = false;
    Exact<T> sum{}, weights{};
    for (Rank rank = 0; rank < world; rank++) {
      if (is_unseen(rank)) continue;
      const auto product = Exact<T>(weight(rank)) * exact(at(rank, i));
      sum = begun ? sum + product : product;  // from 0 it could not become -0
      begun = true;
      weights += Exact<T>(weight(rank));
    }
    if (reduction == Reduction::premul_sum) return rounded<T>(sum);
    if (weights == 0) return T(0);
    if constexpr (std::is_same_v<T, double>)
      return sum / weights;
    else
      return T(float(sum) / float(weights));
  }
};

// One rank's buffers of an operation, in memory of its own or in such as other ranks may read. In place the shorter
// one lies in the other, `at` elements from its begin.
template <class T>
class Buffers {
 public:
  Buffers(Dice& dice, size_t in, size_t out, std::optional<size_t> at = {})
      : memory_(dice.one_in(16) ? lent(2 * half(in, out)) : Memory()),
        in_count(in),
        out_count(out),
        in_place_(at.has_value()),
        in_at_(in < out ? at.value_or(0) : 0),
        out_at_(in < out ? 0 : at.value_or(0)),
        input_(at ? std::max(in, out) : in, dice.below(4), memory_from(0)),
        output_(at ? 0 : out, dice.below(4), memory_from(half(in, out))) {}

  std::byte* input() { return input_.data() + in_at_ * sizeof(T); }
  std::byte* output() { return (in_place_ ? input_ : output_).data() + out_at_ * sizeof(T); }
  void set_input(size_t i, T value) { input_.set(in_at_ + i, value); }
  void set_output(size_t i, T value) { result().set(out_at_ + i, value); }

  // What the input is besides the output must be as it was; only a reduce_scatter in place may have used it.
  uint64_t wrong(const std::function<T(size_t)>& expected, const std::function<T(size_t)>& given,
                 bool keeps_input) {
    uint64_t n = !input_.intact() + !output_.intact();
    for (size_t i = 0; i < out_count; i++) n += differ(result().get(out_at_ + i), expected(i));
    for (size_t i = 0; i < in_count && keeps_input; i++)
      if (!in_place_ || in_at_ + i < out_at_ || in_at_ + i >= out_at_ + out_count)
        n += differ(input_.get(in_at_ + i), given(i));
    return n;
  }

 private:
  static Memory lent(size_t bytes) {
    auto memory = allocate(bytes);
    return memory ? std::move(*memory) : Memory();  // then in memory of its own
  }
  static size_t half(size_t in, size_t out) { return std::max(in, out) * sizeof(T) + 256; }
  std::span<std::byte> memory_from(size_t first) {
    return std::span(memory_.data(), memory_.size()).subspan(memory_.size() == 0 ? 0 : first);
  }
  static bool differ(T got, T right) { return std::memcmp(&got, &right, sizeof(T)) != 0; }
  Guarded<T>& result() { return in_place_ ? input_ : output_; }

  Memory memory_;

 public:
  const size_t in_count, out_count;

 private:
  const bool in_place_;
  const size_t in_at_, out_at_;
  Guarded<T> input_, output_;
};

}  // namespace rondo::test
