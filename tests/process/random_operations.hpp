// Any operation with any type, count, root and reduction, checked against a model that needs no other process.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "random_model.hpp"

namespace rondo::test {

/// A number of elements of this size.
using AnyCount = size_t (*)(Dice& dice, uint32_t world, size_t element_bytes);

template <class T>
class Program {
 public:
  Program(Communicator& comm, Dice& dice, AnyCount any_count)
      : comm_(comm), dice_(dice), world_(comm.world()), rank_(comm.rank()) {
    model_ = {any_reduction<T>(dice), dice.below(1'000'000), world_};
    count_ = any_count(dice, world_, sizeof(T));
    root_ = Rank(dice.below(world_));
    options_.weight = Model<T>::weight(rank_);
    if (dice.one_in(3)) options_.reproducible = true;
    async_ = dice.one_in(2);
  }

  Started start() {
    switch (dice_.below(10)) {
      case 0:
        return all_reduce();
      case 1:
        return reduce_scatter();
      case 2:
        return reduce();
      case 3:
        return all_gather();
      case 4:
        return broadcast();
      case 5:
        return gather();
      case 6:
        return scatter();
      case 7:
        return all_to_all();
      case 8:
        return send_recv();
      default:
        return group();
    }
  }

 private:
  static constexpr DataType type = data_type_of<T>;
  using Maps = std::function<T(size_t)>;

  // `call(false)` runs it, `call(true)` starts it.
  template <class Run, class Submit>
  Started started(const char* name, std::shared_ptr<Buffers<T>> buffers, const Maps& given,
                  const Maps& expected, const Run& run, const Submit& submit) {
    for (size_t i = 0; i < buffers->in_count; i++) buffers->input.set(i, given(i));
    Started result{fmt::format("{} of {} {}, {}, root {}, world {}{}", name, count_, name_of(type),
                               name_of(model_.reduction), root_, world_, async_ ? ", async" : ""),
                   nullptr, [=] { return buffers->wrong(expected, given); }};
    if (async_) {
      auto work = std::make_shared<Result<Work>>(submit());
      result.has_failed = !work->ok();
      result.wait = [work] { return *work ? (*work)->wait() : Result<void>(work->error()); };
    } else {
      const auto outcome = run();
      result.has_failed = !outcome;
      result.wait = [outcome] { return outcome; };
    }
    return result;
  }
  std::shared_ptr<Buffers<T>> buffers(size_t in, size_t out) {
    return std::make_shared<Buffers<T>>(dice_, in, out);
  }

  Started all_reduce() {
    const auto b = buffers(count_, count_);
    const auto model = model_;
    const auto r = model.reduction;
    return started(
        "all_reduce", b, [=, rank = rank_](size_t i) { return model.at(rank, i); },
        [=](size_t i) { return model.reduced(i); },
        [&] { return comm_.all_reduce(b->input.data(), b->output.data(), count_, type, r, options_); },
        [&] { return comm_.async_all_reduce(b->input.data(), b->output.data(), count_, type, r, options_); });
  }
  Started reduce_scatter() {
    const auto counts = parts();
    const size_t first = first_of(counts), total = sum(counts);
    const auto b = buffers(total, counts[rank_]);
    const auto model = model_;
    const auto r = model.reduction;
    return started(
        "reduce_scatter_v", b, [=, rank = rank_](size_t i) { return model.at(rank, i); },
        [=](size_t i) { return model.reduced(first + i); },
        [&] { return comm_.reduce_scatter_v(b->input.data(), b->output.data(), counts, type, r, options_); },
        [&] {
          return comm_.async_reduce_scatter_v(b->input.data(), b->output.data(), counts, type, r, options_);
        });
  }
  Started reduce() {
    const auto b = buffers(count_, rank_ == root_ ? count_ : 0);
    const auto model = model_;
    const auto r = model.reduction;
    return started(
        "reduce", b, [=, rank = rank_](size_t i) { return model.at(rank, i); },
        [=](size_t i) { return model.reduced(i); },
        [&] { return comm_.reduce(b->input.data(), b->output.data(), count_, type, r, root_, options_); },
        [&] {
          return comm_.async_reduce(b->input.data(), b->output.data(), count_, type, r, root_, options_);
        });
  }
  Started all_gather() {
    const auto counts = parts();
    const auto b = buffers(counts[rank_], sum(counts));
    const auto model = model_;
    return started(
        "all_gather_v", b, [=, rank = rank_](size_t i) { return model.at(rank, i); },
        [=](size_t i) {
          Rank owner = 0;
          while (i >= counts[owner]) i -= counts[owner++];
          return model.at(owner, i);
        },
        [&] { return comm_.all_gather_v(b->input.data(), b->output.data(), counts, type, options_); },
        [&] { return comm_.async_all_gather_v(b->input.data(), b->output.data(), counts, type, options_); });
  }
  Started broadcast() {
    const auto b = buffers(0, count_);
    const auto model = model_;
    for (size_t i = 0; i < count_ && rank_ == root_; i++) b->output.set(i, model.at(root_, i));
    return started(
        "broadcast", b, [](size_t) { return T(); }, [=, root = root_](size_t i) { return model.at(root, i); },
        [&] { return comm_.broadcast(b->output.data(), count_, type, root_, options_); },
        [&] { return comm_.async_broadcast(b->output.data(), count_, type, root_, options_); });
  }
  Started gather() {
    const size_t each = count_;
    const auto b = buffers(each, rank_ == root_ ? each * world_ : 0);
    const auto model = model_;
    return started(
        "gather", b, [=, rank = rank_](size_t i) { return model.at(rank, i); },
        [=](size_t i) { return model.at(Rank(i / each), i % each); },
        [&] { return comm_.gather(b->input.data(), b->output.data(), each, type, root_, options_); },
        [&] { return comm_.async_gather(b->input.data(), b->output.data(), each, type, root_, options_); });
  }
  Started scatter() {
    const size_t each = count_;
    const auto b = buffers(rank_ == root_ ? each * world_ : 0, each);
    const auto model = model_;
    return started(
        "scatter", b, [=, root = root_](size_t i) { return model.at(root, i); },
        [=, root = root_, rank = rank_](size_t i) { return model.at(root, rank * each + i); },
        [&] { return comm_.scatter(b->input.data(), b->output.data(), each, type, root_, options_); },
        [&] { return comm_.async_scatter(b->input.data(), b->output.data(), each, type, root_, options_); });
  }
  Started all_to_all() {
    const uint64_t salt = dice_.below(97);
    const auto between = [=](Rank from, Rank to) { return size_t((from * 31 + to * 17 + salt) % 53 * 7); };
    std::vector<size_t> to_each, from_each, firsts;
    for (Rank r = 0; r < world_; r++) {
      to_each.push_back(between(rank_, r));
      from_each.push_back(between(r, rank_));
      size_t first = 0;
      for (Rank s = 0; s < rank_; s++) first += between(r, s);
      firsts.push_back(first);
    }
    const auto b = buffers(sum(to_each), sum(from_each));
    const auto model = model_;
    return started(
        "all_to_all_v", b, [=, rank = rank_](size_t i) { return model.at(rank, i); },
        [=](size_t i) {
          Rank from = 0;
          while (i >= from_each[from]) i -= from_each[from++];
          return model.at(from, firsts[from] + i);
        },
        [&] {
          return comm_.all_to_all_v(b->input.data(), to_each, b->output.data(), from_each, type, options_);
        },
        [&] {
          return comm_.async_all_to_all_v(b->input.data(), to_each, b->output.data(), from_each, type,
                                          options_);
        });
  }
  Started send_recv() {
    const Rank shift = Rank(dice_.below(world_)), to = (rank_ + shift) % world_,
               from = (rank_ + world_ - shift) % world_;
    const auto length = [count = count_](Rank rank) { return count + rank; };
    const auto b = buffers(length(rank_), length(from));
    const auto model = model_;
    return started(
        "send_recv", b, [=, rank = rank_](size_t i) { return model.at(rank, i); },
        [=](size_t i) { return model.at(from, i); },
        [&] {
          return comm_.send_recv(b->input.data(), b->in_count, to, b->output.data(), b->out_count, from, type,
                                 options_);
        },
        [&] {
          return comm_.async_send_recv(b->input.data(), b->in_count, to, b->output.data(), b->out_count, from,
                                       type, options_);
        });
  }
  Started group() {
    const auto b = buffers(count_, count_);
    const auto model = model_;
    const auto r = model.reduction;
    std::vector<Tensor> tensors;
    for (size_t first = 0; first < count_;) {
      const size_t n = std::min<size_t>(count_ - first, 1 + dice_.below(400));
      tensors.push_back({b->input.data() + first * sizeof(T), b->output.data() + first * sizeof(T), n});
      first += n;
    }
    return started(
        "group", b, [=, rank = rank_](size_t i) { return model.at(rank, i); },
        [=](size_t i) { return model.reduced(i); },
        [&] { return comm_.all_reduce_group(tensors, type, r, options_); },
        [&] { return comm_.async_all_reduce_group(tensors, type, r, options_); });
  }

  std::vector<size_t> parts() {
    std::vector<size_t> counts(world_);
    for (size_t& count : counts) count = dice_.one_in(4) ? 0 : dice_.below(1 + count_ / world_ * 2);
    return counts;
  }
  static size_t sum(const std::vector<size_t>& counts) {
    size_t total = 0;
    for (const size_t count : counts) total += count;
    return total;
  }
  size_t first_of(const std::vector<size_t>& counts) const {
    return sum({counts.begin(), counts.begin() + rank_});
  }

  Communicator& comm_;
  Dice& dice_;
  uint32_t world_;
  Rank rank_;
  Model<T> model_{};
  size_t count_;
  Rank root_;
  CallOptions options_;
  bool async_;
};

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

/// Several operations, waited for in any order. `before(k)` is called before the k-th is started, and
/// `failed(comm, error)` with every error that there is, after which nothing more is started.
struct Hooks {
  std::function<void(uint64_t k)> before = [](uint64_t) {};
  std::function<void(const Communicator& comm, const Error& error)> failed = [](const Communicator&,
                                                                                const Error&) {};
};

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
  const uint64_t operations = 1 + common.below(6);
  for (uint64_t k = 0; k < operations && result.right(); k++) {
    // The ranks of different parts of a split draw the same numbers, but from then on each its own way.
    const size_t which = common.below(comms.size());
    Dice dice(common.below(UINT64_MAX));
    hooks.before(k);
    started.emplace_back(comms[which], start_any(*comms[which], dice, any_count));
    if (started.back().second.has_failed) end(started.size() - 1);
  }
  while (!started.empty()) end(common.below(started.size()));
  return result;
}

}  // namespace rondo::test
