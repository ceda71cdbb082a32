// A random sequence: operations of any kind and type on several communicators, waited for in any order.
#pragma once
#include <cstdlib>

#include "random_operations.hpp"

namespace rondo::test {

inline Started start_any(Communicator& comm, Dice& dice, AnyCount any_count) {
  const auto with = [&]<class T>(T) { return Program<T>(comm, dice, any_count).start(); };
  switch (all_data_types[dice.below(all_data_types.size())]) {
    case DataType::f64:
      return with(double());
    case DataType::f32:
      return with(float());
    case DataType::f16:
      return with(float16());
    case DataType::bf16:
      return with(bfloat16());
    case DataType::f8e4m3:
      return with(float8_e4m3());
    case DataType::f8e5m2:
      return with(float8_e5m2());
    case DataType::i8:
      return with(int8_t());
    case DataType::u8:
      return with(uint8_t());
    case DataType::i16:
      return with(int16_t());
    case DataType::u16:
      return with(uint16_t());
    case DataType::i32:
      return with(int32_t());
    case DataType::u32:
      return with(uint32_t());
    case DataType::i64:
      return with(int64_t());
    case DataType::u64:
      return with(uint64_t());
  }
  std::abort();
}

/// How a sequence ended: right, with an error, or with wrong elements.
struct Outcome {
  std::string what;  // the operation that went wrong
  std::optional<Error> error;
  uint64_t wrong = 0, operations = 0;

  bool right() const { return !error && wrong == 0; }
};

/// What a sequence calls on its way: `before(k)` before the k-th operation is started, and `failed(comm, error)` with
/// every error that there is, after which nothing more is started.
struct Hooks {
  std::function<void(uint64_t k)> before = [](uint64_t) {};
  std::function<void(const Communicator& comm, const Error& error)> failed = [](const Communicator&,
                                                                                const Error&) {};
};

/// Several operations, waited for in any order. Where this rank is not in a communicator, that is nullptr.
inline Outcome run_sequence(const std::vector<Communicator*>& comms, uint64_t seed, AnyCount any_count,
                            const Hooks& hooks = {}) {
  Dice common(seed);
  Outcome result;
  std::vector<std::pair<Communicator*, Started>> started;
  const auto end = [&](size_t at) {
    auto& [comm, operation] = started[at];
    if (const auto outcome = operation.wait(); !outcome) {
      hooks.failed(*comm, outcome.error());
      if (result.right()) result = {operation.what, outcome.error(), 0, result.operations};
    } else if (const uint64_t wrong = operation.wrong(); wrong != 0 && result.wrong == 0) {
      result = {operation.what, std::nullopt, wrong, result.operations};
    } else {
      result.operations++;
    }
    started.erase(started.begin() + ptrdiff_t(at));
  };
  const uint64_t operations = 1 + common.below(10);
  for (uint64_t k = 0; k < operations && result.right(); k++) {
    // The ranks of different parts of a split draw the same numbers, but from then on each its own way.
    const size_t which = common.below(comms.size());
    Dice dice(common.below(UINT64_MAX));
    hooks.before(k);
    if (comms[which] == nullptr)
      started.emplace_back(nullptr, nothing());
    else
      started.emplace_back(comms[which], start_any(*comms[which], dice, any_count));
    if (started.back().second.has_failed) end(started.size() - 1);
  }
  while (!started.empty()) end(common.below(started.size()));
  return result;
}

}  // namespace rondo::test
