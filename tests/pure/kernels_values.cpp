// The promises of docs/numerics.md, each by values for which a naive kernel gives something else.
#include <doctest/doctest.h>

#include "kernels_operands.hpp"

namespace rondo::tests {
namespace {

using kernels::Isa;

/// By two operands at a time and by the tree, on every instruction set; false unless all give `expected`.
template <class T>
bool gives(Reduction reduction, const std::vector<T>& values, T expected) {
  bool right = true;
  for (const Isa isa : isas()) {
    right = right && same_bits(reduce(isa, reduction, values), expected) &&
            same_bits(reduce_tree(isa, reduction, values), expected);
  }
  return right;
}

template <class T>
std::vector<T> numbers(std::initializer_list<float> values) {
  std::vector<T> all;
  for (const float value : values) all.push_back(T(value));
  return all;
}

/// By values that are exact in T.
template <class T>
bool gives_numbers(Reduction reduction, std::initializer_list<float> values, float expected) {
  return gives<T>(reduction, numbers<T>(values), T(expected));
}

template <class T>
std::vector<T> nans() {
  if constexpr (is_narrow_float<T>) {
    std::vector<T> all;
    for (uint32_t code = 0; code < 2 * FormatOf<T>::sign; ++code) {
      const T value = T::from_bits(static_cast<typename T::Bits>(code));
      if (is_nan(value) && (code % 37 == 0 || sizeof(T) == 1)) all.push_back(value);
    }
    return all;
  } else {
    // Different payloads and signs, so that only a canonical result is the same everywhere.
    const T nan = std::numeric_limits<T>::quiet_NaN();
    return {nan, -nan, std::numeric_limits<T>::signaling_NaN(), T(std::nan("7"))};
  }
}

template <class T>
void check_nans(T canonical) {
  for (const Reduction reduction :
       {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max, Reduction::avg}) {
    CAPTURE(name_of(reduction));
    for (const T poison : nans<T>()) {
      CHECK(gives<T>(reduction, {poison}, canonical));
      for (size_t place = 0; place < 4; ++place) {
        std::vector<T> values = numbers<T>({1, 2, 3, 4});
        values[place] = poison;
        CHECK(gives<T>(reduction, values, canonical));
        CHECK(gives<T>(reduction, {values[place / 2 * 2], values[place / 2 * 2 + 1]}, canonical));
      }
      CHECK(gives<T>(reduction, {poison, nans<T>().back(), T(1.0f)}, canonical));
    }
  }
}

// Numbers come before NaN, wherever it is and how many there are.
template <class T>
void check_numbers_before_nan(T canonical) {
  const T infinity(std::numeric_limits<float>::infinity());
  for (const T poison : nans<T>()) {
    const T other = nans<T>().back();
    for (size_t place = 0; place < 4; ++place) {
      std::vector<T> values = numbers<T>({1, 3, 4});
      values.insert(values.begin() + long(place), poison);
      CHECK(gives<T>(Reduction::min_num, values, T(1.0f)));
      CHECK(gives<T>(Reduction::max_num, values, T(4.0f)));
    }
    for (const Reduction reduction : {Reduction::min_num, Reduction::max_num}) {
      CHECK(gives<T>(reduction, {poison}, canonical));
      CHECK(gives<T>(reduction, {poison, other, poison}, canonical));
      CHECK(gives<T>(reduction, {poison, other, T(-0.0f), other, poison}, T(-0.0f)));
      if (!is_nan(infinity)) {
        CHECK(gives<T>(reduction, {poison, infinity}, infinity));
        CHECK(gives<T>(reduction, {T(-float(infinity)), poison}, T(-float(infinity))));
      }
    }
    CHECK(gives<T>(Reduction::min_num, {T(0.0f), poison, T(-0.0f)}, T(-0.0f)));
    CHECK(gives<T>(Reduction::max_num, {T(-0.0f), poison, T(0.0f)}, T(0.0f)));
  }
}

template <class T>
void check_infinities(T canonical) {
  const T infinity(std::numeric_limits<float>::infinity()), minus(-std::numeric_limits<float>::infinity());
  CHECK(gives<T>(Reduction::sum, {infinity, minus}, canonical));
  CHECK(gives<T>(Reduction::avg, {T(1.0f), infinity, minus}, canonical));
  CHECK(gives<T>(Reduction::prod, {infinity, T(0.0f)}, canonical));
  CHECK(gives<T>(Reduction::sum, {infinity, T(1.0f), infinity}, infinity));
  CHECK(gives<T>(Reduction::min, {infinity, minus}, minus));
  CHECK(gives<T>(Reduction::max, {T(1.0f), infinity}, infinity));
}

template <class T>
void check_zeros() {
  const T minus(-0.0f), plus(0.0f);
  CHECK(!same_bits(minus, plus));
  CHECK(gives<T>(Reduction::min, {minus, plus}, minus));
  CHECK(gives<T>(Reduction::min, {plus, minus}, minus));
  CHECK(gives<T>(Reduction::min, {minus, minus}, minus));
  CHECK(gives<T>(Reduction::min, {plus, plus}, plus));
  CHECK(gives<T>(Reduction::max, {minus, plus}, plus));
  CHECK(gives<T>(Reduction::max, {plus, minus}, plus));
  CHECK(gives<T>(Reduction::max, {plus, plus}, plus));
  CHECK(gives<T>(Reduction::max, {minus, minus}, minus));
  CHECK(gives<T>(Reduction::sum, {minus, minus}, minus));
  CHECK(gives<T>(Reduction::sum, {minus, minus, minus}, minus));
  CHECK(gives<T>(Reduction::sum, {minus, plus}, plus));
  CHECK(gives<T>(Reduction::avg, {minus, minus}, minus));
  CHECK(gives<T>(Reduction::avg, {minus}, minus));
  CHECK(gives<T>(Reduction::prod, {minus, plus}, minus));
}

template <class T>
void check_integer_limits(T) {
  constexpr T max = std::numeric_limits<T>::max(), min = std::numeric_limits<T>::min();
  constexpr T two(2), all_ones = static_cast<T>(-1);
  CHECK(gives<T>(Reduction::sum, {max, T(1)}, min));
  CHECK(gives<T>(Reduction::sum, {min, all_ones}, static_cast<T>(Unsigned128(min) - 1)));
  CHECK(gives<T>(Reduction::sum, {max, max, two, two}, static_cast<T>(2 * Unsigned128(max) + 4)));
  CHECK(gives<T>(Reduction::prod, {max, max, T(3)}, static_cast<T>(Unsigned128(max) * max * 3)));
  CHECK(gives<T>(Reduction::prod, {max, two}, static_cast<T>(Unsigned128(max) * 2)));
  CHECK(gives<T>(Reduction::min, {T(1), max, min, T(0)}, min));
  CHECK(gives<T>(Reduction::max, {T(1), max, min, T(0)}, max));
  CHECK(gives<T>(Reduction::min_num, {T(1), max, min, T(0)}, min));
  CHECK(gives<T>(Reduction::max_num, {T(1), max, min, T(0)}, max));

  constexpr T half = std::is_signed_v<T> ? max : static_cast<T>(max / 2), high = static_cast<T>(~half);
  CHECK(gives<T>(Reduction::bit_and, {all_ones, half, T(0x5a)}, T(0x5a)));
  CHECK(gives<T>(Reduction::bit_and, {all_ones, high, all_ones, all_ones}, high));
  CHECK(gives<T>(Reduction::bit_or, {T(1), T(2), T(8), high}, static_cast<T>(high | 11)));
  CHECK(gives<T>(Reduction::bit_xor, {all_ones, high, T(3)}, static_cast<T>(half - 3)));
  CHECK(gives<T>(Reduction::bit_xor, {high, high}, T(0)));

  CHECK(gives<T>(Reduction::avg, {max, max}, max));
  CHECK(gives<T>(Reduction::avg, {min, min, min, min, min}, min));
  CHECK(gives<T>(Reduction::avg, {max, static_cast<T>(max - 1), max}, static_cast<T>(max - 1)));
  CHECK(gives<T>(Reduction::avg, {T(3), T(4)}, T(3)));
  CHECK(gives<T>(Reduction::avg, {T(1), T(1), T(1), T(1), T(3)}, T(1)));  // dividing each first gives 0
  if constexpr (std::is_signed_v<T>) {
    CHECK(gives<T>(Reduction::avg, {max, min}, T(0)));
    CHECK(gives<T>(Reduction::avg, {T(-3), T(-4)}, T(-3)));
    CHECK(gives<T>(Reduction::avg, {T(-7)}, T(-7)));
  }
  // The largest world: the sum needs 20 bits more than T.
  for (const Isa isa : isas()) {
    CHECK(reduce_tree(isa, Reduction::avg, std::vector<T>(1 << 20, min)) == min);
    CHECK(reduce_tree(isa, Reduction::avg, std::vector<T>(1 << 20, max)) == max);
  }
}

}  // namespace

TEST_CASE("kernels: a NaN anywhere gives the canonical NaN") {
  for_each_canonical_nan([](auto nan) { check_nans(nan); });
}

TEST_CASE("kernels: a NaN yields to any number in min_num and max_num") {
  for_each_canonical_nan([](auto nan) { check_numbers_before_nan(nan); });
}

TEST_CASE("kernels: infinities, and the canonical NaN where two of them meet") {
  for_each_canonical_nan([]<class T>(T nan) {
    if constexpr (!std::is_same_v<T, float8_e4m3>) check_infinities(nan);  // it has none
  });
}

TEST_CASE("kernels: -0 is below +0, and sums start from the first operand") {
  check_zeros<double>();
  check_zeros<float>();
  for_each_narrow_float([]<class T>(T) { check_zeros<T>(); });
}

TEST_CASE("kernels: integers wrap, their averages neither overflow nor round away from zero") {
  for_each_integer([](auto type) { check_integer_limits(type); });
  CHECK(gives<int8_t>(Reduction::sum, {120, 100}, -36));
  CHECK(gives<uint16_t>(Reduction::prod, {65535, 65535}, 1));  // promoted to int it would overflow
  constexpr int64_t odd = (int64_t{1} << 53) + 1;              // not through a double
  CHECK(gives<int64_t>(Reduction::avg, {odd, odd}, odd));
}

TEST_CASE("kernels: an average divides once, at the end") {
  // 1/3 is not exact: dividing before adding gives another value.
  CHECK(gives<float>(Reduction::avg, {1, 1, 5}, 7.0f / 3.0f));
  CHECK(gives<double>(Reduction::avg, {0.1, 0.2, 0.4}, (0.1 + 0.2 + 0.4) / 3.0));
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(gives<float>(Reduction::avg, {tiny, tiny}, tiny));  // halves would be 0
}

TEST_CASE("kernels: sums of narrow floats are rounded once, not at every rank") {
  // 263 and 2055 lie in the middle of two numbers, the even one of which is above. Rounded each time, 1 is
  // lost.
  CHECK(gives_numbers<bfloat16>(Reduction::sum, {256, 1, 1, 1, 1, 1, 1, 1}, 264));
  CHECK(gives_numbers<float16>(Reduction::sum, {2048, 1, 1, 1, 1, 1, 1, 1}, 2056));
  CHECK(gives_numbers<float16>(Reduction::sum, {2048, 1, 1, 1}, 2052));  // 2051
  CHECK(gives_numbers<float8_e4m3>(Reduction::sum, {16, 1, 1, 1}, 20));  // 19
  CHECK(gives_numbers<float8_e5m2>(Reduction::sum, {8, 1, 1, 1}, 12));   // 11
  CHECK(gives_numbers<float16>(Reduction::sum, {60000, 60000, -60000}, 60000));
  CHECK(gives_numbers<float16>(Reduction::prod, {256, 256, 0.00390625f}, 256));
}

TEST_CASE("kernels: averages of narrow floats do not overflow") {
  CHECK(gives_numbers<float16>(Reduction::avg, {40000, 40000}, 40000));
  CHECK(gives_numbers<float8_e4m3>(Reduction::avg, {448, 448, 448}, 448));
  CHECK(gives_numbers<float8_e5m2>(Reduction::avg, {57344, 57344, 57344}, 57344));
}

TEST_CASE("kernels: an average of narrow floats is the nearest number to the quotient, up to 4096 ranks") {
  Random random(3);
  for_each_narrow_float([&random]<class T>(T) {
    for (const uint32_t world : {3u, 5u, 7u, 11u, 100u, 1023u, 4095u, 4096u}) {
      // Sums of multiples of 1/8 below 16 are exact.
      std::vector<T> values(world);
      double sum = 0;
      for (T& value : values) {
        value = T(float(int(random() % 255) - 127) / 8);
        sum += value_of<T>(value.bits);
      }
      const auto expected = static_cast<typename T::Bits>(nearest<T>(sum / world));
      CHECK(gives<T>(Reduction::avg, values, T::from_bits(expected)));
    }
  });
}

TEST_CASE("kernels: what is too large becomes infinity, in float8_e4m3 NaN") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(gives_numbers<float16>(Reduction::sum, {65504, 8}, 65504));
  CHECK(gives_numbers<float16>(Reduction::sum, {65504, 16}, infinity));  // in the middle, the even one
  CHECK(gives_numbers<float16>(Reduction::sum, {-65504, -65504}, -infinity));
  CHECK(gives_numbers<float8_e5m2>(Reduction::sum, {57344, 2048}, 57344));
  CHECK(gives_numbers<float8_e5m2>(Reduction::sum, {57344, 4096}, infinity));
  CHECK(gives_numbers<float8_e5m2>(Reduction::prod, {-57344, 4}, -infinity));
  const auto nan = float8_e4m3::from_bits(0x7f);
  CHECK(gives_numbers<float8_e4m3>(Reduction::sum, {448, 16}, 448));  // 448 is the even one here
  CHECK(gives<float8_e4m3>(Reduction::sum, numbers<float8_e4m3>({448, 18}), nan));
  CHECK(gives<float8_e4m3>(Reduction::sum, numbers<float8_e4m3>({-448, -448}), nan));
  CHECK(gives<float8_e4m3>(Reduction::sum, numbers<float8_e4m3>({448, 448, -448}), float8_e4m3(448)));
}

}  // namespace rondo::tests
