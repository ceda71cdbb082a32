// The conversions of narrow floats: every code, and all floats or those around every boundary of rounding;
// the public types and the kernels of every instruction set.
#include <doctest/doctest.h>

#include "kernels_operands.hpp"
#include "tests/sanitized.hpp"
#include "tests/skip.hpp"

namespace rondo::tests {
namespace {

using kernels::Isa;

template <class T>
T from_code(uint32_t code) {
  return T::from_bits(static_cast<typename T::Bits>(code));
}

/// first[c] is the bits of the smallest float whose nearest code is c or more, for the codes up to overflow.
template <class T>
std::vector<uint32_t> boundaries() {
  std::vector<uint32_t> first{0};
  for (uint32_t code = 1; code <= FormatOf<T>::infinity; ++code) {
    uint32_t low = first.back(), high = 0x7f800000;  // nearest(low) < code <= nearest(high)
    while (high - low > 1) {
      const uint32_t middle = low + (high - low) / 2;
      (nearest<T>(std::bit_cast<float>(middle)) < code ? low : high) = middle;
    }
    first.push_back(high);
  }
  return first;
}

/// Narrows floats by a kernel: adding -0 changes nothing, not even -0.
template <class T>
void narrow_by_kernel(Isa isa, const std::vector<float>& values, std::vector<T>& codes) {
  static const std::vector<T> zeros(1 << 16, T(-0.0f));
  REQUIRE(values.size() <= zeros.size());
  codes.resize(values.size());
  reducer(isa, data_type_of<T>, Reduction::sum)
      .finish_partial(reinterpret_cast<std::byte*>(codes.data()),
                      reinterpret_cast<const std::byte*>(values.data()),
                      reinterpret_cast<const std::byte*>(zeros.data()), values.size(), 2);
}

/// The first float that is not narrowed to the nearest number, if any.
template <class T>
std::string wrongly_narrowed(const std::vector<float>& values) {
  std::vector<T> expected, codes;
  for (const float value : values) {
    expected.push_back(from_code<T>(nearest<T>(value)));
    if (!same_bits(T(value), expected.back())) return "T(" + std::to_string(value) + ")";
  }
  for (const Isa isa : isas()) {
    narrow_by_kernel(isa, values, codes);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!same_bits(codes[i], expected[i])) return name_of(isa) + ": " + std::to_string(values[i]);
    }
  }
  return "";
}

template <class T>
void check_every_code() {
  std::vector<T> codes;
  for (uint32_t code = 0; code < 2 * FormatOf<T>::sign; ++code) {
    codes.push_back(from_code<T>(code));
    const float value = float(codes.back()), expected = float(value_of<T>(code));
    CHECK(same_partial(value, expected));
    CHECK(T(value).bits == (std::isnan(expected) ? FormatOf<T>::nan : code));
  }
  std::vector<float> values(codes.size());
  const std::vector<T> zeros(codes.size(), T(-0.0f));
  for (const Isa isa : isas()) {
    reducer(isa, data_type_of<T>, Reduction::sum)
        .narrow(reinterpret_cast<std::byte*>(values.data()), reinterpret_cast<const std::byte*>(codes.data()),
                reinterpret_cast<const std::byte*>(zeros.data()), codes.size());
    bool right = true;
    for (uint32_t code = 0; code < codes.size(); ++code)
      right = right && same_partial(values[code], float(value_of<T>(code)));
    CHECK_MESSAGE(right, name_of(isa));
  }
}

template <class T>
void check_boundaries() {
  std::vector<float> values;
  const auto check = [&values] {
    CHECK(wrongly_narrowed<T>(values) == "");
    values.clear();
  };
  for (const uint32_t boundary : boundaries<T>()) {
    for (int step = -3; step <= 3; ++step) {
      const uint32_t bits = (boundary + uint32_t(step)) & 0x7fffffff;
      values.push_back(std::bit_cast<float>(bits));
      values.push_back(std::bit_cast<float>(bits | 0x80000000));
    }
    if (values.size() > 60'000) check();
  }
  check();
}

template <class T>
void check_strided() {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 4099) {
    values.push_back(std::bit_cast<float>(uint32_t(bits)));
    if (values.size() == 1 << 16) {
      CHECK(wrongly_narrowed<T>(values) == "");
      values.clear();
    }
  }
  CHECK(wrongly_narrowed<T>(values) == "");
}

/// Every float of one sign, in order: the codes are known from the boundaries between them.
template <class T>
void check_all(uint32_t sign) {
  std::vector<uint32_t> first = boundaries<T>();
  first.push_back(0x7f800001);  // NaN from here on
  first.push_back(0x80000000);
  const std::vector<Isa> all = isas();
  std::vector<float> values(1 << 16);
  std::vector<T> expected(values.size()), codes;
  std::vector<uint32_t> wrong_blocks(all.size());
  uint32_t code = 0;
  for (uint32_t block = 0; block < 0x80000000; block += uint32_t(values.size())) {
    for (uint32_t i = 0; i < values.size(); ++i) values[i] = std::bit_cast<float>((block + i) | sign);
    for (size_t i = 0; i < values.size();) {
      while (first[code + 1] <= block + i) ++code;
      const bool nan = code > FormatOf<T>::infinity || code == FormatOf<T>::nan;
      const size_t end = std::min<size_t>(values.size(), first[code + 1] - block);
      const uint32_t signed_code = code | (sign != 0 ? FormatOf<T>::sign : 0);
      std::fill(&expected[i], expected.data() + end, from_code<T>(nan ? FormatOf<T>::nan : signed_code));
      i = end;
    }
    for (size_t k = 0; k < all.size(); ++k) {
      narrow_by_kernel(all[k], values, codes);
      wrong_blocks[k] += std::memcmp(codes.data(), expected.data(), codes.size() * sizeof(T)) != 0;
    }
  }
  for (size_t k = 0; k < all.size(); ++k)
    CHECK_MESSAGE(wrong_blocks[k] == 0, name_of(all[k]) << " " << name_of(data_type_of<T>));
}

static_assert(std::is_trivially_copyable_v<float16> && std::is_trivially_default_constructible_v<float16>);
static_assert(!std::is_convertible_v<float, float16> && !std::is_convertible_v<float16, float>);
static_assert(float(float16(-1.5f)) == -1.5f && float16(1.0f).bits == 0x3c00);
static_assert(bfloat16(1.0f).bits == 0x3f80 && float8_e4m3(1.0f).bits == 0x38 &&
              float8_e5m2(1.0f).bits == 0x3c);

}  // namespace

TEST_CASE("narrow floats: every code is widened exactly, and comes back") {
  for_each_narrow_float([]<class T>(T) { check_every_code<T>(); });
}

TEST_CASE("narrow floats: the limits that the header states") {
  CHECK(float(float16::from_bits(0x7bff)) == 65504);
  CHECK(float(float16::from_bits(1)) == std::ldexp(1.0f, -24));
  CHECK(float(bfloat16::from_bits(0x7f7f)) == std::ldexp(255.0f, 120));  // 3.39e38
  CHECK(float(bfloat16::from_bits(1)) == std::ldexp(1.0f, -133));
  CHECK(float(float8_e4m3::from_bits(0x7e)) == 448);
  CHECK(float(float8_e4m3::from_bits(1)) == std::ldexp(1.0f, -9));
  CHECK(float(float8_e5m2::from_bits(0x7b)) == 57344);
  CHECK(float(float8_e5m2::from_bits(1)) == std::ldexp(1.0f, -16));
}

TEST_CASE("narrow floats: they compare as floats do") {
  for_each_narrow_float([]<class T>(T) {
    CHECK(T(-0.0f) == T(0.0f));
    CHECK(T(1.0f) != T(1.5f));
    CHECK(T(std::nanf("")) != T(std::nanf("")));
  });
}

TEST_CASE("narrow floats: rounding around every boundary") {
  for_each_narrow_float([]<class T>(T) { check_boundaries<T>(); });
}

TEST_CASE("narrow floats: rounding of a million floats from everywhere") {
  for_each_narrow_float([]<class T>(T) { check_strided<T>(); });
}

TEST_SUITE("slow: conversions") {
  TEST_CASE("narrow floats: rounding of all 2^32 floats, on every instruction set") {
    if (test::sanitized) SKIP_TEST("all floats take too long under a sanitizer");
    for_each_narrow_float([]<class T>(T) {
      check_all<T>(0);
      check_all<T>(0x80000000);
    });
  }
}

}  // namespace rondo::tests
