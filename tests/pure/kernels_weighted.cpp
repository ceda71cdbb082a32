// Weighted reductions, of every type and instruction set, against the reference and by values for which a
// naive kernel gives something else.
#include <doctest/doctest.h>

#include "kernels_operands.hpp"

namespace rondo::tests {
namespace {

using kernels::Isa;
using kernels::Reducer;
using Weights = std::vector<double>;

static_assert(is_weighted(Reduction::premul_sum) && is_weighted(Reduction::weighted_avg));
static_assert(!is_weighted(Reduction::sum) && !is_weighted(Reduction::avg));
static_assert(is_defined(DataType::i8, Reduction::bit_xor) &&
              !is_defined(DataType::f8e5m2, Reduction::bit_or));
static_assert(is_defined(DataType::bf16, Reduction::weighted_avg));
static_assert(!is_defined(DataType::u64, Reduction::weighted_avg));
static_assert(is_defined(DataType::u64, Reduction::premul_sum) && is_defined(DataType::f64, Reduction::avg));

/// The reference: products and quotient in the accumulator type, each rounded once; integers modulo 2^128.
template <class T, class Values>
T weighted(const Weights& weights, double divisor, const Values& values) {
  if constexpr (std::is_integral_v<T>) {
    Unsigned128 sum = 0;
    for (uint32_t k = 0; k < weights.size(); ++k)
      sum += Unsigned128(Int128(weights[k])) * Unsigned128(values(k));
    return static_cast<T>(sum);
  } else {
    using A = AccumulatorOf<T, Reduction::sum>;
    const auto product = [&](uint32_t k) { return static_cast<A>(A(weights[k]) * widened<A>(values(k))); };
    const A sum = tree<A>(Reduction::sum, product, uint32_t(weights.size()));
    return finished<T, A>(Reduction::sum, static_cast<A>(sum / A(divisor)), 1);
  }
}

template <class T>
void call(Isa isa, Reduction reduction, std::byte* target, const std::vector<Misaligned<T>>& sources,
          const Weights& weights, double divisor, size_t count) {
  std::vector<const std::byte*> at;
  for (const auto& source : sources) at.push_back(source.data());
  reducer(isa, data_type_of<T>, reduction)
      .finish_weighted(target, at.data(), weights.data(), uint32_t(at.size()), divisor, count);
}

/// False unless the kernel of every instruction set gives the reference's bits.
template <class T>
bool agrees(Reduction reduction, const std::vector<Misaligned<T>>& sources, const Weights& weights,
            double divisor, size_t count, bool in_every_place) {
  std::vector<T> expected;
  for (size_t i = 0; i < count; ++i)
    expected.push_back(weighted<T>(weights, divisor, [&](uint32_t k) { return sources[k][i]; }));
  const auto right = [&](const Misaligned<T>& target) {
    for (size_t i = 0; i < count; ++i)
      if (!same_bits(target[i], expected[i])) return false;
    return target.only_its_own_bytes_written();
  };
  for (const Isa isa : isas()) {
    Misaligned<T> apart(count, count % 8);
    call(isa, reduction, apart.data(), sources, weights, divisor, count);
    if (!right(apart)) return false;
    for (size_t k = 0; in_every_place && k < sources.size(); ++k) {
      std::vector<Misaligned<T>> copies = sources;
      call(isa, reduction, copies[k].data(), copies, weights, divisor, count);
      if (!right(copies[k])) return false;
    }
  }
  return true;
}

template <class T>
std::vector<Reduction> weighted_reductions() {
  if constexpr (is_float<T>)
    return {Reduction::premul_sum, Reduction::weighted_avg};
  else
    return {Reduction::premul_sum};
}

/// Moderate ones, and those with which f32 overflows and underflows; the limits of those of integers.
template <class T>
std::vector<Weights> pools() {
  if constexpr (is_float<T>)
    return {{1}, {1, 3, 0.5, 0, 7.3}, {1, 3, 0.5, 1e-30, 1e30, 0}};
  else
    return {{1}, {1, 3, 0, -1, 255, 0x1p33 + 5, -0x1p63, 0x1p64 - 0x1p11}};
}

template <class T>
std::vector<Misaligned<T>> contributions(uint32_t n, size_t count, Random& random) {
  std::vector<Misaligned<T>> all;
  for (uint32_t k = 0; k < n; ++k) {
    all.emplace_back(count, (k * 3 + count) % 8);
    all.back().fill(random);
    // Special values would make most results NaN; of floats only one in eight elements keeps them.
    for (size_t i = 0; is_float<T> && i < count; ++i)
      if (i % 8 != 0) all.back().set(i, T((float(random() % 4096) - 2048) * (k % 3 == 0 ? 1000 : 0.01f)));
  }
  return all;
}

template <class T>
void check_type(T) {
  Random random(6);
  for (const Reduction reduction : weighted_reductions<T>()) {
    CAPTURE(std::string(name_of(data_type_of<T>)) + " " + std::string(name_of(reduction)));
    for (const uint32_t n : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 12u, 16u, 17u, 33u}) {
      CAPTURE(n);
      for (const Weights& pool : pools<T>()) {
        Weights weights;
        double sum = 0;
        for (uint32_t k = 0; k < n; ++k)
          weights.push_back(pool[random() % pool.size()]), sum += weights.back();
        const double divisor = reduction == Reduction::premul_sum ? 1 : sum > 0 ? sum : 3;
        // Around the widths of vectors; then more than one block, of which the last is short.
        for (const size_t count : {size_t(0), size_t(1), size_t(15), size_t(16), size_t(35)})
          CHECK(agrees(reduction, contributions<T>(n, count, random), weights, divisor, count, true));
        const size_t long_count = 1024 / sizeof(T) + 9;
        if (n < 10)
          CHECK(agrees(reduction, contributions<T>(n, long_count, random), weights, divisor, long_count,
                       n == 3));
      }
    }
  }
}

/// Every pair of codes, and a third contribution that varies with them.
template <class T>
void check_every_pair(T) {
  constexpr size_t count = 1 << 16;
  std::vector<Misaligned<T>> sources(3, Misaligned<T>(count, 1));
  const auto code = [](size_t bits) { return std::bit_cast<T>(static_cast<uint8_t>(bits)); };
  for (size_t i = 0; i < count; ++i) {
    sources[0].set(i, code(i));
    sources[1].set(i, code(i >> 8));
    sources[2].set(i, code((i * 0x9e37) >> 5));
  }
  std::vector<Misaligned<T>> two(sources.begin(), sources.begin() + 2);
  std::vector<Weights> pairs{{1, 1}, {3, 1}, {1, 0}};
  if (is_float<T>)
    pairs.insert(pairs.end(), {{0.5, 3}, {1e30, 1e-30}, {0.1, 0.7}});
  else
    pairs.insert(pairs.end(), {{-1, 3}, {255, 257}});
  for (const Reduction reduction : weighted_reductions<T>()) {
    CAPTURE(std::string(name_of(data_type_of<T>)) + " " + std::string(name_of(reduction)));
    for (Weights weights : pairs) {
      const bool average = reduction == Reduction::weighted_avg;
      CHECK(agrees(reduction, two, weights, average ? weights[0] + weights[1] : 1, count, false));
      weights.push_back(2);
      CHECK(agrees(reduction, sources, weights, average ? weights[0] + weights[1] + 2 : 1, count, false));
    }
  }
}

/// Enough equal elements for vectors and for what they leave; every instruction set.
template <class T>
bool gives(Reduction reduction, const Weights& weights, const std::vector<T>& values, double divisor,
           T expected) {
  for (const Isa isa : isas()) {
    const size_t count = 67;
    std::vector<Misaligned<T>> sources(values.size(), Misaligned<T>(count, 0));
    for (size_t k = 0; k < values.size(); ++k)
      for (size_t i = 0; i < count; ++i) sources[k].set(i, values[k]);
    Misaligned<T> target(count, 0);
    call(isa, reduction, target.data(), sources, weights, divisor, count);
    for (size_t i = 0; i < count; ++i)
      if (!same_bits(target[i], expected)) return false;
  }
  return true;
}

constexpr Reduction average = Reduction::weighted_avg, premul = Reduction::premul_sum;

template <class T>
std::vector<T> numbers(std::initializer_list<float> values) {
  std::vector<T> all;
  for (const float value : values) all.push_back(T(value));
  return all;
}

template <class T>
void check_float_values(T canonical_nan) {
  const T infinity(std::numeric_limits<float>::infinity()), zero(0.0f), minus_zero(-0.0f);
  // 3 tokens with the sum 6 and 1 with the sum 10; the mean of the means would be 6.
  CHECK(gives<T>(average, {3, 1}, numbers<T>({2, 10}), 4, T(4.0f)));
  CHECK(gives<T>(average, {0.5}, {T(1.5f)}, 0.5, T(1.5f)));
  CHECK(gives<T>(premul, {1, 3, -2}, numbers<T>({2, 4, 1}), 1, T(12.0f)));
  CHECK(gives<T>(premul, {1, 1}, {minus_zero, minus_zero}, 1, minus_zero));
  CHECK(gives<T>(premul, {-1, 1}, {minus_zero, minus_zero}, 1, zero));
  CHECK(gives<T>(average, {1, 3}, {canonical_nan, T(1.0f)}, 4, canonical_nan));
  CHECK(gives<T>(premul, {0, 1}, {canonical_nan, T(1.0f)}, 1, canonical_nan));  // its owner asked for it
  if (!is_nan(infinity)) {
    CHECK(gives<T>(premul, {0}, {infinity}, 1, canonical_nan));
    CHECK(gives<T>(average, {1, 2}, {infinity, T(1.0f)}, 3, infinity));
    CHECK(gives<T>(premul, {1, -1}, {infinity, infinity}, 1, canonical_nan));
  }
}

}  // namespace

TEST_CASE("weighted: f64 and f32 agree with the reference, bit for bit") {
  check_type(double());
  check_type(float());
}
TEST_CASE("weighted: narrow floats agree with the reference, bit for bit") {
  for_each_narrow_float([](auto type) { check_type(type); });
}
TEST_CASE("weighted: integers agree with the reference, bit for bit") {
  for_each_integer([](auto type) { check_type(type); });
}
TEST_CASE("weighted: every pair of elements of 8 bits") {
  check_every_pair(float8_e4m3());
  check_every_pair(float8_e5m2());
  check_every_pair(int8_t());
  check_every_pair(uint8_t());
}

TEST_CASE("weighted: an average of 2 with weight 3 and 10 with weight 1 is 4; NaN and zeros") {
  for_each_canonical_nan([](auto nan) { check_float_values(nan); });
}

TEST_CASE("weighted: integers wrap, and weights are whole numbers of 64 bits") {
  CHECK(gives<int8_t>(premul, {3}, {50}, 1, -106));
  CHECK(gives<int8_t>(premul, {3, 1}, {50, 100}, 1, -6));
  CHECK(gives<uint16_t>(premul, {65535}, {65535}, 1, 1));  // promoted to int it would overflow
  CHECK(gives<int64_t>(premul, {1, -1}, {(int64_t{1} << 53) + 1, 5}, 1, (int64_t{1} << 53) - 4));
  CHECK(gives<uint64_t>(premul, {0x1p63, -1}, {3, 1}, 1, (uint64_t{1} << 63) - 1));
  CHECK(gives<int32_t>(premul, {0x1p32 + 2, -0x1p63}, {21, 1}, 1, 42));
}

TEST_CASE("weighted: every product, sum and quotient is rounded once, in the accumulator type") {
  // 263 lies in the middle of two bf16, the even one of which is above; rounded each time it stays 256.
  const auto eight = numbers<bfloat16>({256, 1, 1, 1, 1, 1, 1, 1});
  CHECK(gives<bfloat16>(premul, Weights(8, 1), eight, 1, bfloat16(264)));
  CHECK(gives<bfloat16>(average, Weights(8, 1), eight, 8, bfloat16(33)));  // 32.875, not 32
  CHECK(gives<bfloat16>(average, Weights(8, 3), eight, 24, bfloat16(33)));
  // Weights are not rounded to the element type.
  CHECK(gives<bfloat16>(premul, {257, -256}, numbers<bfloat16>({1, 1}), 1, bfloat16(1)));
  CHECK(gives<float16>(average, {60000, 60000}, numbers<float16>({40000, 40000}), 120000, float16(40000)));
  // A fused multiply-add would leave 2^-24 and 2^-54.
  const float f = 1 + 0x1p-12f, f_squared = 1 + 0x1p-11f;
  CHECK(gives<float>(premul, {f, -1}, {f, f_squared}, 1, 0.0f));
  CHECK(gives<float>(premul, {-1, f}, {f_squared, f}, 1, 0.0f));
  const double d = 1 + 0x1p-27, d_squared = 1 + 0x1p-26;
  CHECK(gives<double>(premul, {d, -1}, {d, d_squared}, 1, 0.0));
  CHECK(gives<double>(premul, {-1, d}, {d_squared, d}, 1, 0.0));
  CHECK(gives<double>(premul, {1 + 0x1p-40}, {1}, 1, 1 + 0x1p-40));  // not through f32
  CHECK(gives<float>(premul, {1 + 0x1p-40}, {1}, 1, 1.0f));
  // One division, at the end; not a multiplication by a third.
  CHECK(gives<float>(average, {1, 1, 1}, {1, 1, 5}, 3, 7.0f / 3.0f));
  CHECK(gives<double>(average, {1, 2}, {0.1, 0.4}, 3, (0.1 + 2 * 0.4) / 3.0));
}

TEST_CASE("weighted: products are added in the order of the canonical tree") {
  CHECK(gives<float>(premul, {2, 1, 1, 1}, {0.5e8f, 1, -1e8f, 1}, 1, 0.0f));
  CHECK(gives<float>(premul, {2, 1, 1, 1, 1}, {0.5e8f, 1, -1e8f, 1, 1}, 1, 1.0f));
  CHECK(gives<float>(premul, {1, 2, 1}, {1, 0.5e8f, -1e8f}, 1, 0.0f));
  CHECK(gives<float>(premul, {0, 0, 0, 0, 2, 1, 1}, {0, 0, 0, 0, 0.5e8f, -1e8f, 1}, 1, 1.0f));
}

TEST_CASE("weighted: a reducer has either the weighted kernel or all the others") {
  for (const DataType type : all_data_types) {
    for (const Reduction reduction : all_reductions) {
      if (!is_defined(type, reduction)) continue;
      const Reducer& kernels = kernels::reducer(type, reduction);
      const bool none_of_others = !kernels.narrow && !kernels.partial && !kernels.partials &&
                                  !kernels.finish_narrow && !kernels.finish_partial &&
                                  !kernels.finish_partials && !kernels.finish && !kernels.finish_tree;
      const bool all_others = kernels.narrow && kernels.partial && kernels.partials &&
                              kernels.finish_narrow && kernels.finish_partial && kernels.finish_partials &&
                              kernels.finish && kernels.finish_tree;
      CHECK(is_weighted(reduction) == (kernels.finish_weighted != nullptr));
      CHECK((is_weighted(reduction) ? none_of_others : all_others));
      CHECK(kernels.element_bytes == size_of(type));
      if (is_weighted(reduction))
        CHECK(kernels.accumulator_bytes == kernels::reducer(type, Reduction::sum).accumulator_bytes);
    }
  }
}

}  // namespace rondo::tests
