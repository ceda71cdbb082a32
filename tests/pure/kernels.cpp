// Every kernel of two operands, of every type, reduction and instruction set, against the reference.
#include <doctest/doctest.h>

#include "kernels_operands.hpp"

namespace rondo::tests {
namespace {

using kernels::Isa;
using kernels::Reducer;

template <class T, class A>
struct Checks {
  const Reducer& kernels;
  Reduction reduction;
  Random& random;

  template <class Left, class Right>
  bool combine(Reducer::Combine call, size_t count, size_t offset) const {
    Misaligned<Left> left(count, offset);
    Misaligned<Right> right(count, (offset * 3 + 1) % 8);
    Misaligned<A> target(count, (offset * 5 + 2) % 8);
    left.fill(random);
    right.fill(random);
    call(target.data(), left.data(), right.data(), count);
    for (size_t i = 0; i < count; ++i) {
      const A expected = combined<A>(reduction, widened<A>(left[i]), widened<A>(right[i]));
      if (!same_partial(target[i], expected)) return false;
    }
    return target.only_its_own_bytes_written();
  }

  template <class Left, class Right>
  bool finish(Reducer::Finish call, size_t count, size_t offset, uint32_t world) const {
    Misaligned<Left> left(count, offset);
    Misaligned<Right> right(count, (offset * 3 + 1) % 8);
    Misaligned<T> target(count, (offset * 5 + 2) % 8);
    left.fill(random);
    right.fill(random);
    // The partials of an integer average are sums of so many elements.
    const uint32_t on_right = sizeof(Right) > sizeof(T) ? world / 2 : 1;
    if constexpr (!is_float<T> && sizeof(Left) > sizeof(T))
      for (size_t i = 0; i < count; ++i) left.set(i, Left(awkward<T>(random)) * Left(world - on_right));
    if constexpr (!is_float<T> && sizeof(Right) > sizeof(T))
      for (size_t i = 0; i < count; ++i) right.set(i, Right(awkward<T>(random)) * Right(on_right));
    call(target.data(), left.data(), right.data(), count, world);
    for (size_t i = 0; i < count; ++i) {
      const A value = combined<A>(reduction, widened<A>(left[i]), widened<A>(right[i]));
      if (!same_bits(target[i], finished<T, A>(reduction, value, world))) return false;
    }
    return target.only_its_own_bytes_written();
  }

  bool finish_one(size_t count, size_t offset) const {
    Misaligned<T> source(count, offset), target(count, (offset * 5 + 2) % 8);
    source.fill(random);
    kernels.finish(target.data(), source.data(), count, 1);
    for (size_t i = 0; i < count; ++i) {
      if (!same_bits(target[i], finished<T, A>(reduction, widened<A>(source[i]), 1))) return false;
    }
    return target.only_its_own_bytes_written();
  }

  /// In place, on the left or on the right, gives what apart gives.
  template <class Target, class Left, class Right, class Call>
  bool aliased(Call call, bool on_left, size_t count, size_t offset) const {
    Misaligned<Left> left(count, on_left ? offset : (offset + 3) % 8);
    Misaligned<Right> right(count, on_left ? (offset + 3) % 8 : offset);
    Misaligned<Target> apart(count, 0);
    left.fill(random);
    right.fill(random);
    call(apart.data(), left.data(), right.data(), count);
    std::byte* const target = on_left ? left.data() : right.data();
    call(target, left.data(), right.data(), count);
    for (size_t i = 0; i < count; ++i) {
      Target value;
      std::memcpy(&value, target + i * sizeof(Target), sizeof(Target));
      if (!same_partial(value, apart[i])) return false;
    }
    return left.only_its_own_bytes_written() && right.only_its_own_bytes_written();
  }

  bool everything(size_t count, size_t offset) const {
    bool right = combine<T, T>(kernels.narrow, count, offset) &&
                 combine<A, T>(kernels.partial, count, offset) &&
                 combine<A, A>(kernels.partials, count, offset) && finish_one(count, offset);
    for (const uint32_t world : {2u, 3u, 64u, 1u << 20}) {
      right = right && finish<T, T>(kernels.finish_narrow, count, offset, world) &&
              finish<A, T>(kernels.finish_partial, count, offset, world) &&
              finish<A, A>(kernels.finish_partials, count, offset, world);
    }
    return right;
  }

  bool everything_in_place(size_t count, size_t offset) const {
    const auto finish_narrow = [this](auto* target, auto* left, auto* right, size_t n) {
      kernels.finish_narrow(target, left, right, n, 3);
    };
    const auto finish_partial = [this](auto* target, auto* left, auto* right, size_t n) {
      kernels.finish_partial(target, left, right, n, 3);
    };
    bool right = true;
    for (const bool on_left : {true, false}) {
      right = right && aliased<T, T, T>(finish_narrow, on_left, count, offset) &&
              aliased<A, A, A>(kernels.partials, on_left, count, offset);
      if (sizeof(T) == sizeof(A)) right = right && aliased<A, T, T>(kernels.narrow, on_left, count, offset);
    }
    if (is_float<A> || std::is_same_v<T, A>)
      right = right && aliased<T, A, T>(finish_partial, false, count, offset);
    return right && aliased<A, A, T>(kernels.partial, true, count, offset);
  }
};

// Around the widths of vectors and of the blocks in which types are widened.
const std::vector<size_t> counts{0,  1,  2,  3,  5,  7,  8,   9,   15,  16,  17,  23,  31,
                                 32, 33, 47, 63, 64, 65, 127, 128, 129, 255, 257, 1027};

template <class T, class A>
void check_reduction(Isa isa, Reduction reduction) {
  Random random(1);
  const DataType type = data_type_of<T>;
  CAPTURE(name_of(isa));
  CAPTURE(std::string(name_of(type)) + " " + std::string(name_of(reduction)));
  const Checks<T, A> checks{reducer(isa, type, reduction), reduction, random};
  CHECK(checks.kernels.element_bytes == sizeof(T));
  CHECK(checks.kernels.accumulator_bytes == sizeof(A));
  for (const size_t count : counts) {
    CAPTURE(count);
    for (size_t offset = 0; offset < 8; ++offset) {
      if (count > 100 && offset != count % 8) continue;
      CAPTURE(offset);
      CHECK(checks.everything(count, offset));
      CHECK(checks.everything_in_place(count, offset));
    }
  }
}

template <class T>
void check_type(T) {
  for (const Isa isa : isas()) {
    for_each_reduction<T>([isa]<class A>(A, Reduction reduction) { check_reduction<T, A>(isa, reduction); });
  }
}

}  // namespace

TEST_CASE("kernels: f64 agrees with the reference, bit for bit") { check_type(double()); }
TEST_CASE("kernels: f32 agrees with the reference, bit for bit") { check_type(float()); }
TEST_CASE("kernels: narrow floats agree with the reference, bit for bit") {
  for_each_narrow_float([](auto type) { check_type(type); });
}
TEST_CASE("kernels: integers agree with the reference, bit for bit") {
  for_each_integer([](auto type) { check_type(type); });
}

TEST_CASE("kernels: the engine gets the best instruction set of this processor") {
  const Isa best = isas().back();
  for (const DataType type : all_data_types) {
    for (const Reduction reduction : all_reductions)
      if (is_defined(type, reduction))
        CHECK(&kernels::reducer(type, reduction) == &reducer(best, type, reduction));
  }
}

}  // namespace rondo::tests
