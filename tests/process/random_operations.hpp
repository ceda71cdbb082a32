// Any operation with any type, count, root and reduction, checked against a model that needs no other process.
#pragma once
#include <algorithm>
#include <optional>
#include <thread>

#include "random_model.hpp"
#include "schedule/catalogue.hpp"

namespace rondo::test {

/// A number of elements of this size.
using AnyCount = size_t (*)(Dice& dice, uint32_t world, size_t element_bytes);

inline Started nothing() {
  return {"nothing", [] { return Result<void>(); }, [] { return uint64_t(0); }};
}

template <class T>
class Program {
 public:
  Program(Communicator& comm, Dice& dice, AnyCount any_count)
      : comm_(comm), dice_(dice), world_(comm.world()), rank_(comm.rank()) {
    model_ = {any_reduction<T>(dice), dice.below(1'000'000), world_};
    count_ = any_count(dice, world_, sizeof(T));
    root_ = Rank(dice.below(world_));
    options_.weight = model_.weight(rank_);
    const uint64_t reproducible = dice.below(6);
    if (reproducible < 3) options_.reproducible = reproducible < 2;
    if (dice.one_in(3)) options_.tag = dice.below(UINT64_MAX);
    if (dice.one_in(4)) options_.timeout = std::chrono::minutes(1);
    async_ = dice.one_in(2);
    waiting_ = dice.below(8);
    in_place_ = dice.one_in(3);
    even_ = dice.one_in(3);
  }

  Started start() {
    switch (dice_.below(13)) {
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
        return all_to_all_v();
      case 8:
        return all_to_all();
      case 9:
        return send_recv();
      case 10:
        return world_ == 1 ? send_recv() : send_to_recv();
      case 11:
        return barrier();
      default:
        return group();
    }
  }

 private:
  using Operation = schedule::Operation;
  using Maps = std::function<T(size_t)>;
  static constexpr DataType type = data_type_of<T>;

  // One of those that can do what is asked for, or nothing.
  void ask_for_an_algorithm(Operation operation) {
    std::vector<std::string_view> able;
    for (const schedule::Schedule& schedule : schedule::catalogue())
      if (schedule.operation == operation && fits(schedule)) able.push_back(name_of(schedule.algorithm));
    const uint64_t drawn = dice_.below(2 * able.size());
    if (drawn < able.size()) options_.algorithm = able[drawn];
  }
  bool fits(const schedule::Schedule& schedule) const {
    if (!schedule::reduces(schedule.operation)) return true;
    const bool at_once = schedule.algorithm == schedule::Algorithm::direct ||
                         schedule.algorithm == schedule::Algorithm::one_shot;
    const bool no_order_shows = !is_float(data_type_of<T>) || is_extremum(model_.reduction);
    return (!options_.reproducible.value_or(false) || schedule.canonical || no_order_shows) &&
           (!is_weighted(model_.reduction) || at_once);
  }
  // Of an operation that has just ended, the last one of its communicator.
  bool ran_what_fits(Operation operation) const {
    if (world_ == 1) return true;
    const auto ran = comm_.last_algorithm();
    const auto algorithm = schedule::algorithm_named(ran);
    const auto* schedule = algorithm ? schedule::find(operation, *algorithm) : nullptr;
    return schedule != nullptr && fits(*schedule) &&
           (options_.algorithm.empty() || options_.algorithm == ran);
  }

  static Result<void> end_of(Work& work, uint64_t how) {
    while (how == 0 && !work.test()) std::this_thread::yield();
    while (how == 1 && !work.test()) (void)work.wait(std::chrono::milliseconds(1));
    return work.wait();
  }

  // `run()` runs it, `submit()` starts it.
  template <class Run, class Submit>
  Started started(Operation operation, std::string_view name, std::shared_ptr<Buffers<T>> buffers,
                  const Maps& given, const Maps& expected, const Run& run, const Submit& submit) {
    for (size_t i = 0; i < buffers->in_count; i++) buffers->set_input(i, given(i));
    ask_for_an_algorithm(operation);
    const bool keeps_input = operation != Operation::reduce_scatter;
    Started result{what(name), nullptr, [=] { return buffers->wrong(expected, given, keeps_input); }};
    if (async_) {
      auto work = std::make_shared<Result<Work>>(submit());
      result.has_failed = !work->ok();
      result.wait = [work, how = waiting_] {
        return *work ? end_of(**work, how) : Result<void>(work->error());
      };
    } else {
      const auto outcome = run();
      result.has_failed = !outcome;
      result.wait = [outcome] { return outcome; };
      if (outcome && !ran_what_fits(operation)) result.wrong = [] { return 1; };
    }
    return result;
  }
  std::string what(std::string_view name) const {
    return fmt::format("{} of {} {}, {}, root {}, world {}{}{}{} algorithm \"{}\"", name, count_,
                       name_of(type), name_of(model_.reduction), root_, world_, async_ ? ", async" : "",
                       in_place_ ? ", in place" : "",
                       options_.reproducible ? *options_.reproducible ? ", reproducible" : ", any order" : "",
                       options_.algorithm);
  }
  // In place, where that is drawn and there is a place.
  std::shared_ptr<Buffers<T>> buffers(size_t in, size_t out, std::optional<size_t> place) {
    return std::make_shared<Buffers<T>>(dice_, in, out, in_place_ ? place : std::nullopt);
  }
  Maps own() const {
    return [model = model_, rank = rank_](size_t i) { return model.at(rank, i); };
  }
  Maps reduced(size_t first = 0) const {
    return [=, model = model_](size_t i) { return model.reduced(first + i); };
  }

  Started all_reduce() {
    const auto b = buffers(count_, count_, 0);
    const auto r = model_.reduction;
    return started(
        Operation::all_reduce, "all_reduce", b, own(), reduced(),
        [&] { return comm_.all_reduce(b->input(), b->output(), count_, type, r, options_); },
        [&] { return comm_.async_all_reduce(b->input(), b->output(), count_, type, r, options_); });
  }
  Started reduce_scatter() {
    const auto counts = parts();
    const size_t first = first_of(counts), total = sum(counts);
    const auto b = buffers(total, counts[rank_], first);
    const auto r = model_.reduction;
    const auto operation = Operation::reduce_scatter;
    if (even_)
      return started(
          operation, "reduce_scatter", b, own(), reduced(first),
          [&] { return comm_.reduce_scatter(b->input(), b->output(), total, type, r, options_); },
          [&] { return comm_.async_reduce_scatter(b->input(), b->output(), total, type, r, options_); });
    return started(
        operation, "reduce_scatter_v", b, own(), reduced(first),
        [&] { return comm_.reduce_scatter_v(b->input(), b->output(), counts, type, r, options_); },
        [&] { return comm_.async_reduce_scatter_v(b->input(), b->output(), counts, type, r, options_); });
  }
  Started reduce() {
    const bool is_root = rank_ == root_;
    const auto b = buffers(count_, is_root ? count_ : 0, is_root ? std::optional<size_t>(0) : std::nullopt);
    const auto r = model_.reduction;
    return started(
        Operation::reduce, "reduce", b, own(), reduced(),
        [&] { return comm_.reduce(b->input(), b->output(), count_, type, r, root_, options_); },
        [&] { return comm_.async_reduce(b->input(), b->output(), count_, type, r, root_, options_); });
  }
  Started all_gather() {
    const auto counts = parts();
    const size_t total = sum(counts);
    const auto b = buffers(counts[rank_], total, first_of(counts));
    const Maps of_all = [=, model = model_](size_t i) {
      Rank owner = 0;
      while (i >= counts[owner]) i -= counts[owner++];
      return model.at(owner, i);
    };
    const auto operation = Operation::all_gather;
    if (even_)
      return started(
          operation, "all_gather", b, own(), of_all,
          [&] { return comm_.all_gather(b->input(), b->output(), total, type, options_); },
          [&] { return comm_.async_all_gather(b->input(), b->output(), total, type, options_); });
    return started(
        operation, "all_gather_v", b, own(), of_all,
        [&] { return comm_.all_gather_v(b->input(), b->output(), counts, type, options_); },
        [&] { return comm_.async_all_gather_v(b->input(), b->output(), counts, type, options_); });
  }
  Started broadcast() {
    const auto b = buffers(0, count_, std::nullopt);
    const Maps of_root = [model = model_, root = root_](size_t i) { return model.at(root, i); };
    for (size_t i = 0; i < count_ && rank_ == root_; i++) b->set_output(i, of_root(i));
    return started(
        Operation::broadcast, "broadcast", b, own(), of_root,
        [&] { return comm_.broadcast(b->output(), count_, type, root_, options_); },
        [&] { return comm_.async_broadcast(b->output(), count_, type, root_, options_); });
  }
  // Where the root's own part lies in the whole.
  std::optional<size_t> place_at_root() const {
    return rank_ == root_ ? std::optional<size_t>(rank_ * count_) : std::nullopt;
  }
  Started gather() {
    const size_t each = count_;
    const auto b = buffers(each, rank_ == root_ ? each * world_ : 0, place_at_root());
    return started(
        Operation::gather, "gather", b, own(),
        [=, model = model_](size_t i) { return model.at(Rank(i / each), i % each); },
        [&] { return comm_.gather(b->input(), b->output(), each, type, root_, options_); },
        [&] { return comm_.async_gather(b->input(), b->output(), each, type, root_, options_); });
  }
  Started scatter() {
    const size_t each = count_;
    const auto b = buffers(rank_ == root_ ? each * world_ : 0, each, place_at_root());
    return started(
        Operation::scatter, "scatter", b, own(),
        [=, model = model_, root = root_, rank = rank_](size_t i) { return model.at(root, rank * each + i); },
        [&] { return comm_.scatter(b->input(), b->output(), each, type, root_, options_); },
        [&] { return comm_.async_scatter(b->input(), b->output(), each, type, root_, options_); });
  }
  Started all_to_all() {
    const size_t each = count_ / world_;
    const auto b = buffers(each * world_, each * world_, std::nullopt);
    return started(
        Operation::all_to_all, "all_to_all", b, own(),
        [=, model = model_, rank = rank_](size_t i) {
          return model.at(Rank(i / each), rank * each + i % each);
        },
        [&] { return comm_.all_to_all(b->input(), b->output(), each, type, options_); },
        [&] { return comm_.async_all_to_all(b->input(), b->output(), each, type, options_); });
  }
  Started all_to_all_v() {
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
    const auto b = buffers(sum(to_each), sum(from_each), std::nullopt);
    return started(
        Operation::all_to_all, "all_to_all_v", b, own(),
        [=, model = model_](size_t i) {
          Rank from = 0;
          while (i >= from_each[from]) i -= from_each[from++];
          return model.at(from, firsts[from] + i);
        },
        [&] { return comm_.all_to_all_v(b->input(), to_each, b->output(), from_each, type, options_); },
        [&] {
          return comm_.async_all_to_all_v(b->input(), to_each, b->output(), from_each, type, options_);
        });
  }
  Started send_recv() {
    const Rank shift = Rank(dice_.below(world_)), to = (rank_ + shift) % world_,
               from = (rank_ + world_ - shift) % world_;
    const auto length = [count = count_](Rank rank) { return count + rank; };
    const auto b = buffers(length(rank_), length(from), std::nullopt);
    const auto in = b->in_count, out = b->out_count;
    return started(
        Operation::send_recv, "send_recv", b, own(),
        [=, model = model_](size_t i) { return model.at(from, i); },
        [&] { return comm_.send_recv(b->input(), in, to, b->output(), out, from, type, options_); },
        [&] { return comm_.async_send_recv(b->input(), in, to, b->output(), out, from, type, options_); });
  }
  // From the root to another rank; the others do nothing.
  Started send_to_recv() {
    const Rank to = (root_ + 1 + Rank(dice_.below(world_ - 1))) % world_;
    if (rank_ != root_ && rank_ != to) return nothing();
    const Maps sent = [model = model_, root = root_](size_t i) { return model.at(root, i); };
    if (rank_ == root_) {
      const auto b = buffers(count_, 0, std::nullopt);
      return started(
          Operation::send_recv, "send", b, sent, sent,
          [&] { return comm_.send(b->input(), count_, type, to, options_); },
          [&] { return comm_.async_send(b->input(), count_, type, to, options_); });
    }
    const auto b = buffers(0, count_, std::nullopt);
    return started(
        Operation::send_recv, "recv", b, sent, sent,
        [&] { return comm_.recv(b->output(), count_, type, root_, options_); },
        [&] { return comm_.async_recv(b->output(), count_, type, root_, options_); });
  }
  Started barrier() {
    return started(
        Operation::barrier, "barrier", buffers(0, 0, std::nullopt), own(), own(),
        [&] { return comm_.barrier(options_); }, [&] { return comm_.async_barrier(options_); });
  }
  Started group() {
    const auto b = buffers(count_, count_, 0);
    const auto r = model_.reduction;
    std::vector<Tensor> tensors;
    for (size_t first = 0; first < count_;) {
      const size_t n = std::min<size_t>(count_ - first, dice_.below(400));
      tensors.push_back({b->input() + first * sizeof(T), b->output() + first * sizeof(T), n});
      first += n;
    }
    return started(
        Operation::all_reduce, "group", b, own(), reduced(),
        [&] { return comm_.all_reduce_group(tensors, type, r, options_); },
        [&] { return comm_.async_all_reduce_group(tensors, type, r, options_); });
  }

  std::vector<size_t> parts() {
    std::vector<size_t> counts(world_);
    for (Rank rank = 0; rank < world_ && even_; rank++) counts[rank] = shard(count_, world_, rank).count;
    if (even_) return counts;
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
  bool async_, in_place_, even_;  // even: in parts of the usual sizes
  uint64_t waiting_;
};

}  // namespace rondo::test
