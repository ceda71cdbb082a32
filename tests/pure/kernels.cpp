// Every reduction on every instruction set that this processor has, against plain scalar code written here.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa.hpp"

using namespace rondo;
using namespace rondo::kernels;

namespace {

__extension__ using Int128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

constexpr std::array all_reductions{Reduction::sum, Reduction::prod, Reduction::min, Reduction::max,
                                    Reduction::avg};

std::vector<Isa> isas() {
  std::vector<Isa> able;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (runs(isa)) able.push_back(isa);
  }
  return able;
}

// ---- the reference: one element at a time, every case spelled out

template <class T>
T reference_min(T left, T right) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(left) || std::isnan(right)) return std::numeric_limits<T>::quiet_NaN();
    if (left == 0 && right == 0) return std::signbit(left) || std::signbit(right) ? T(-0.0) : T(0.0);
  }
  return left < right ? left : right;
}

template <class T>
T reference_max(T left, T right) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(left) || std::isnan(right)) return std::numeric_limits<T>::quiet_NaN();
    if (left == 0 && right == 0) return std::signbit(left) && std::signbit(right) ? T(-0.0) : T(0.0);
  }
  return left < right ? right : left;
}

template <class A>
A reference_op(Reduction reduction, A left, A right) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::avg:
      if constexpr (std::is_floating_point_v<A>)
        return left + right;
      else
        return static_cast<A>(Unsigned128(left) + Unsigned128(right));
    case Reduction::prod:
      if constexpr (std::is_floating_point_v<A>)
        return left * right;
      else
        return static_cast<A>(Unsigned128(left) * Unsigned128(right));
    case Reduction::min:
      return reference_min(left, right);
    case Reduction::max:
      return reference_max(left, right);
  }
  return left;
}

template <class T, class A>
T reference_finish(Reduction reduction, A value, uint32_t world) {
  if (reduction == Reduction::avg) value = value / static_cast<A>(world);
  if constexpr (std::is_same_v<A, float>) {
    if (std::isnan(value)) return std::bit_cast<float>(uint32_t{0x7fc00000});
  } else if constexpr (std::is_same_v<A, double>) {
    if (std::isnan(value)) return std::bit_cast<double>(uint64_t{0x7ff8000000000000});
  }
  return static_cast<T>(value);
}

// ---- values

/// Random bits, every fourth one of the values at which reductions go wrong.
template <class T>
T awkward(std::mt19937_64& random) {
  if constexpr (std::is_same_v<T, Int128>) {
    return static_cast<Int128>(Unsigned128(random()) << 64 | random());
  } else {
    using limits = std::numeric_limits<T>;
    if (random() % 4 == 0) {
      const std::array values{T(0),
                              T(-0.0),
                              T(1),
                              T(-1),
                              limits::max(),
                              limits::min(),
                              limits::lowest(),
                              limits::denorm_min(),
                              T(-limits::denorm_min()),
                              limits::infinity(),
                              T(-limits::infinity()),
                              limits::quiet_NaN()};
      return values[random() % values.size()];
    }
    const uint64_t bits = random();
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
}

/// Elements at an offset of some bytes from a 64-byte boundary, with marked bytes before and after.
template <class T>
class Misaligned {
 public:
  Misaligned(size_t count, size_t offset) : offset_(64 + offset), size_(count * sizeof(T)) {
    bytes_.assign(offset_ + size_ + 64 + 64, mark);
  }
  std::byte* data() {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    return bytes_.data() + (64 - address % 64) % 64 + offset_;
  }
  T operator[](size_t index) {
    T value;
    std::memcpy(&value, data() + index * sizeof(T), sizeof(T));
    return value;
  }
  void fill(std::mt19937_64& random) {
    for (size_t i = 0; i < size_ / sizeof(T); ++i) {
      const T value = awkward<T>(random);
      std::memcpy(data() + i * sizeof(T), &value, sizeof(T));
    }
  }
  bool only_its_own_bytes_written() {
    for (std::byte* at = bytes_.data(); at != data(); ++at) {
      if (*at != mark) return false;
    }
    for (std::byte* at = data() + size_; at != bytes_.data() + bytes_.size(); ++at) {
      if (*at != mark) return false;
    }
    return true;
  }

 private:
  static constexpr std::byte mark{0xa5};
  size_t offset_, size_;
  std::vector<std::byte> bytes_;
};

template <class T>
bool same_bits(T left, T right) {
  return std::memcmp(&left, &right, sizeof(T)) == 0;
}

/// A partial may hold any NaN.
template <class A>
bool same_partial(A left, A right) {
  if constexpr (std::is_floating_point_v<A>) {
    if (std::isnan(left) && std::isnan(right)) return true;
  }
  return same_bits(left, right);
}

// ---- checks of one (type, accumulator, reduction, instruction set)

template <class T, class A>
struct Checks {
  const Reducer& kernels;
  Reduction reduction;
  std::mt19937_64& random;

  template <class Left, class Right>
  bool combine(Reducer::Combine call, size_t count, size_t offset) const {
    Misaligned<Left> left(count, offset);
    Misaligned<Right> right(count, (offset * 3 + 1) % 8);
    Misaligned<A> target(count, (offset * 5 + 2) % 8);
    left.fill(random);
    right.fill(random);
    call(target.data(), left.data(), right.data(), count);
    for (size_t i = 0; i < count; ++i) {
      if (!same_partial(target[i], reference_op<A>(reduction, left[i], right[i]))) return false;
    }
    return target.only_its_own_bytes_written();
  }

  template <class Left>
  bool finish(Reducer::Finish call, size_t count, size_t offset, uint32_t world) const {
    Misaligned<Left> left(count, offset);
    Misaligned<T> right(count, (offset * 3 + 1) % 8), target(count, (offset * 5 + 2) % 8);
    left.fill(random);
    right.fill(random);
    call(target.data(), left.data(), right.data(), count, world);
    for (size_t i = 0; i < count; ++i) {
      const A value = reference_op<A>(reduction, left[i], right[i]);
      if (!same_bits(target[i], reference_finish<T, A>(reduction, value, world))) return false;
    }
    return target.only_its_own_bytes_written();
  }

  bool finish_one(size_t count, size_t offset) const {
    Misaligned<T> source(count, offset), target(count, (offset * 5 + 2) % 8);
    source.fill(random);
    kernels.finish(target.data(), source.data(), count, 1);
    for (size_t i = 0; i < count; ++i) {
      if (!same_bits(target[i], reference_finish<T, A>(reduction, source[i], 1))) return false;
    }
    return target.only_its_own_bytes_written();
  }

  /// In place, on the left or on the right, gives what apart gives.
  template <class Call>
  bool aliased(Call call, bool on_left, size_t count, size_t offset) const {
    Misaligned<T> kept(count, (offset + 3) % 8), target(count, offset), apart(count, 0);
    kept.fill(random);
    target.fill(random);
    if (on_left)
      call(apart.data(), target.data(), kept.data(), count);
    else
      call(apart.data(), kept.data(), target.data(), count);
    if (on_left)
      call(target.data(), target.data(), kept.data(), count);
    else
      call(target.data(), kept.data(), target.data(), count);
    for (size_t i = 0; i < count; ++i) {
      if (!same_partial(target[i], apart[i])) return false;
    }
    return target.only_its_own_bytes_written();
  }

  bool everything(size_t count, size_t offset) const {
    bool right = combine<T, T>(kernels.narrow, count, offset) &&
                 combine<A, T>(kernels.partial, count, offset) &&
                 combine<A, A>(kernels.partials, count, offset) && finish_one(count, offset);
    for (const uint32_t world : {2u, 3u, 64u, 4'000'000'000u}) {
      right = right && finish<T>(kernels.finish_narrow, count, offset, world) &&
              finish<A>(kernels.finish_partial, count, offset, world);
    }
    return right;
  }

  bool everything_in_place(size_t count, size_t offset) const {
    const auto finish_narrow = [this](auto* target, auto* left, auto* right, size_t n) {
      kernels.finish_narrow(target, left, right, n, 3);
    };
    bool right = aliased(finish_narrow, true, count, offset) && aliased(finish_narrow, false, count, offset);
    if constexpr (sizeof(T) == sizeof(A)) {
      for (const Reducer::Combine call : {kernels.narrow, kernels.partial, kernels.partials}) {
        right = right && aliased(call, true, count, offset) && aliased(call, false, count, offset);
      }
    }
    return right;
  }
};

std::vector<size_t> counts() {
  std::vector<size_t> all{1027};
  for (size_t count = 0; count <= 70; ++count) all.push_back(count);
  return all;
}

template <class T, class A>
void check_reduction(Isa isa, Reduction reduction) {
  std::mt19937_64 random(1);
  const DataType type = data_type_of<T>;
  CAPTURE(static_cast<int>(isa));
  CAPTURE(std::string(name_of(type)) + " " + std::string(name_of(reduction)));
  const Checks<T, A> checks{reducer(isa, type, reduction), reduction, random};
  CHECK(checks.kernels.element_bytes == sizeof(T));
  CHECK(checks.kernels.accumulator_bytes == sizeof(A));
  for (const size_t count : counts()) {
    CAPTURE(count);
    for (size_t offset = 0; offset < 8; ++offset) {
      CAPTURE(offset);
      CHECK(checks.everything(count, offset));
      CHECK(checks.everything_in_place(count, offset));
    }
  }
}

template <class T, class Average>
void check_type() {
  for (const Isa isa : isas()) {
    for (const Reduction reduction : all_reductions) {
      if (reduction == Reduction::avg)
        check_reduction<T, Average>(isa, reduction);
      else
        check_reduction<T, T>(isa, reduction);
    }
  }
}

// ---- the engine's way through several contributions: narrow, partial ..., finish_partial

template <class T>
T reduce(Isa isa, Reduction reduction, const std::vector<T>& values) {
  const Reducer& kernels = reducer(isa, data_type_of<T>, reduction);
  const auto bytes = [&](size_t i) { return reinterpret_cast<const std::byte*>(&values[i]); };
  const auto world = static_cast<uint32_t>(values.size());
  T result{};
  auto* target = reinterpret_cast<std::byte*>(&result);
  if (world == 1) {
    kernels.finish(target, bytes(0), 1, world);
  } else if (world == 2) {
    kernels.finish_narrow(target, bytes(0), bytes(1), 1, world);
  } else {
    std::vector<std::byte> partial(kernels.accumulator_bytes), next(partial);
    kernels.narrow(partial.data(), bytes(0), bytes(1), 1);
    for (size_t i = 2; i + 1 < values.size(); ++i) {
      kernels.partial(next.data(), partial.data(), bytes(i), 1);
      partial.swap(next);
    }
    kernels.finish_partial(target, partial.data(), bytes(values.size() - 1), 1, world);
  }
  return result;
}

template <class T>
auto bits_of(T value) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>(value);
}

template <class T>
void check_nan_placements(uint64_t canonical) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  // Different payloads and signs, so that only a canonical result is the same everywhere.
  const std::array nans{nan, T(-nan), std::numeric_limits<T>::signaling_NaN(), T(std::nan("7"))};
  for (const Isa isa : isas()) {
    for (const Reduction reduction : all_reductions) {
      CAPTURE(name_of(reduction));
      for (const T poison : nans) {
        CHECK(bits_of(reduce<T>(isa, reduction, {poison})) == canonical);
        for (size_t place = 0; place < 4; ++place) {
          std::vector<T> values{1, 2, 3, 4};
          values[place] = poison;
          CHECK(bits_of(reduce(isa, reduction, values)) == canonical);
          CHECK(bits_of(reduce<T>(isa, reduction, {values[place / 2 * 2], values[place / 2 * 2 + 1]})) ==
                canonical);
        }
        CHECK(bits_of(reduce<T>(isa, reduction, {poison, T(-poison), 1})) == canonical);
      }
    }
    const T infinity = std::numeric_limits<T>::infinity();
    CHECK(bits_of(reduce<T>(isa, Reduction::sum, {infinity, -infinity})) == canonical);
    CHECK(bits_of(reduce<T>(isa, Reduction::avg, {1, infinity, -infinity})) == canonical);
    CHECK(bits_of(reduce<T>(isa, Reduction::prod, {infinity, 0})) == canonical);
    CHECK(reduce<T>(isa, Reduction::min, {infinity, -infinity}) == -infinity);
  }
}

template <class T>
void check_zeros() {
  const T minus = T(-0.0), plus = T(0.0);
  for (const Isa isa : isas()) {
    const auto is_minus = [isa](Reduction reduction, std::vector<T> values) {
      const T result = reduce(isa, reduction, values);
      CHECK(result == 0);
      return std::signbit(result);
    };
    CHECK(is_minus(Reduction::min, {minus, plus}));
    CHECK(is_minus(Reduction::min, {plus, minus}));
    CHECK(is_minus(Reduction::min, {minus, minus}));
    CHECK(!is_minus(Reduction::min, {plus, plus}));
    CHECK(!is_minus(Reduction::max, {minus, plus}));
    CHECK(!is_minus(Reduction::max, {plus, minus}));
    CHECK(!is_minus(Reduction::max, {plus, plus}));
    CHECK(is_minus(Reduction::max, {minus, minus}));
    CHECK(is_minus(Reduction::sum, {minus, minus}));
    CHECK(is_minus(Reduction::sum, {minus, minus, minus}));
    CHECK(!is_minus(Reduction::sum, {minus, plus}));
    CHECK(is_minus(Reduction::avg, {minus, minus}));
    CHECK(is_minus(Reduction::avg, {minus}));
    CHECK(is_minus(Reduction::prod, {minus, plus}));
  }
}

}  // namespace

TEST_CASE("kernels: f32 agrees with the reference, bit for bit") { check_type<float, float>(); }
TEST_CASE("kernels: f64 agrees with the reference, bit for bit") { check_type<double, double>(); }
TEST_CASE("kernels: i32 agrees with the reference, bit for bit") { check_type<int32_t, int64_t>(); }
TEST_CASE("kernels: i64 agrees with the reference, bit for bit") { check_type<int64_t, Int128>(); }

TEST_CASE("kernels: integer sums and products wrap") {
  constexpr int32_t max32 = std::numeric_limits<int32_t>::max(), min32 = std::numeric_limits<int32_t>::min();
  constexpr int64_t max64 = std::numeric_limits<int64_t>::max(), min64 = std::numeric_limits<int64_t>::min();
  for (const Isa isa : isas()) {
    CHECK(reduce<int32_t>(isa, Reduction::sum, {max32, 1}) == min32);
    CHECK(reduce<int32_t>(isa, Reduction::sum, {min32, -1}) == max32);
    CHECK(reduce<int32_t>(isa, Reduction::sum, {max32, max32, 2}) == 0);
    CHECK(reduce<int32_t>(isa, Reduction::prod, {min32, -1}) == min32);
    CHECK(reduce<int32_t>(isa, Reduction::prod, {65536, 65536}) == 0);
    CHECK(reduce<int64_t>(isa, Reduction::sum, {max64, 1}) == min64);
    CHECK(reduce<int64_t>(isa, Reduction::prod, {min64, -1}) == min64);
    CHECK(reduce<int64_t>(isa, Reduction::prod, {max64, max64, 3}) == 3);
  }
}

TEST_CASE("kernels: integer averages do not overflow and truncate toward zero") {
  constexpr int32_t max32 = std::numeric_limits<int32_t>::max(), min32 = std::numeric_limits<int32_t>::min();
  constexpr int64_t max64 = std::numeric_limits<int64_t>::max(), min64 = std::numeric_limits<int64_t>::min();
  for (const Isa isa : isas()) {
    CHECK(reduce<int32_t>(isa, Reduction::avg, {max32, max32}) == max32);
    CHECK(reduce<int32_t>(isa, Reduction::avg, {min32, min32, min32, min32}) == min32);
    CHECK(reduce<int32_t>(isa, Reduction::avg, {max32, min32}) == 0);
    CHECK(reduce<int32_t>(isa, Reduction::avg, {-3, -4}) == -3);
    CHECK(reduce<int32_t>(isa, Reduction::avg, {3, 4}) == 3);
    CHECK(reduce<int32_t>(isa, Reduction::avg, {1, 1, 1, 1, 3}) == 1);  // dividing each first gives 0
    CHECK(reduce<int32_t>(isa, Reduction::avg, {-7}) == -7);
    CHECK(reduce<int64_t>(isa, Reduction::avg, {max64, max64}) == max64);
    CHECK(reduce<int64_t>(isa, Reduction::avg, {min64, min64, min64}) == min64);
    CHECK(reduce<int64_t>(isa, Reduction::avg, {max64, max64, min64, min64}) == 0);
    CHECK(reduce<int64_t>(isa, Reduction::avg, {-3, -4}) == -3);
    CHECK(reduce<int64_t>(isa, Reduction::avg, {(int64_t{1} << 53) + 1, (int64_t{1} << 53) + 1}) ==
          (int64_t{1} << 53) + 1);  // not through a double
  }
}

TEST_CASE("kernels: an average divides once, at the end") {
  for (const Isa isa : isas()) {
    // 1/3 is not exact: dividing before adding gives another value.
    CHECK(reduce<float>(isa, Reduction::avg, {1, 1, 5}) == 7.0f / 3.0f);
    CHECK(reduce<double>(isa, Reduction::avg, {0.1, 0.2, 0.4}) == (0.1 + 0.2 + 0.4) / 3.0);
    const float tiny = std::numeric_limits<float>::denorm_min();
    CHECK(reduce<float>(isa, Reduction::avg, {tiny, tiny}) == tiny);  // halves would be 0
  }
}

TEST_CASE("kernels: a NaN anywhere gives the canonical NaN") {
  check_nan_placements<float>(0x7fc00000);
  check_nan_placements<double>(0x7ff8000000000000);
}

TEST_CASE("kernels: -0 is below +0, and sums start from the first operand") {
  check_zeros<float>();
  check_zeros<double>();
}

TEST_CASE("kernels: the engine gets the best instruction set of this processor") {
  const Isa best = isas().back();
  for (const Reduction reduction : all_reductions) {
    CHECK(&reducer(DataType::f32, reduction) == &reducer(best, DataType::f32, reduction));
  }
}
