// What a collective is checked with: cases, what must come out of each, and how all ranks run them.
#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "reference.hpp"
#include "schedule/catalogue.hpp"
#include "world.hpp"

namespace rondo::test {

using schedule::Algorithm;
using schedule::Operation;

/// One call of all ranks.
struct Case {
  Operation operation;
  Algorithm algorithm;
  Reduction reduction;
  uint64_t count;
  bool in_place;
  size_t offset;  // bytes of misalignment
  Rank root;
};

inline std::string text(const Case& c, uint32_t world, DataType type) {
  return fmt::format("{} {} {} {} world={} count={} {} offset={} root={}", name_of(c.algorithm),
                     name_of(c.operation), name_of(type), name_of(c.reduction), world, c.count,
                     c.in_place ? "in place" : "out of place", c.offset, c.root);
}

/// What the ranks start from and what a reduction makes of it.
template <class T>
class Data {
 public:
  Data(uint32_t world, uint64_t count, Reduction reduction)
      : elements_(world, std::vector<T>(count)), reduced_(count) {
    const auto compute = [=, this](Rank rank) {
      for (uint64_t i = 0; i < count; i++) elements_[rank][i] = test::element<T>(rank, i, reduction);
      const Extent mine = shard(count, world, rank);
      for (uint64_t i = mine.first; i < mine.first + mine.count; i++)
        reduced_[i] = test::reduced<T>(world, i, reduction);
    };
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < world; rank++)
      if (count < 65536)
        compute(rank);
      else
        threads.emplace_back(compute, rank);
    for (auto& thread : threads) thread.join();
  }
  std::span<const T> elements(Rank rank, Extent e) const {
    return std::span(elements_[rank]).subspan(e.first, e.count);
  }
  std::span<const T> reduced(Extent e) const { return std::span(reduced_).subspan(e.first, e.count); }

 private:
  std::vector<std::vector<T>> elements_;  // of every rank
  std::vector<T> reduced_;
};

template <class T>
using DataSets = std::map<Reduction, Data<T>>;

/// Large enough for every case.
template <class T>
DataSets<T> data_for(uint32_t world, const std::vector<Case>& cases) {
  std::map<Reduction, uint64_t> counts;
  for (const Case& c : cases) counts[c.reduction] = std::max(counts[c.reduction], c.count);
  DataSets<T> sets;
  for (const auto& [reduction, count] : counts) sets.try_emplace(reduction, world, count, reduction);
  return sets;
}

/// What rank `rank` holds of the whole vector, in `extent`, when the operation is over: pieces one after the
/// other.
template <class T>
std::vector<std::span<const T>> expected(const Case& c, uint32_t world, Rank rank, Extent extent,
                                         const Data<T>& data) {
  std::vector<std::span<const T>> pieces;
  if (extent.count == 0) return pieces;
  switch (c.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::reduce:
      return {data.reduced(extent)};
    case Operation::scatter:
    case Operation::broadcast:
      return {data.elements(c.root, extent)};
    case Operation::send_recv:
      return {data.elements((rank + world - c.root) % world, extent)};
    case Operation::all_to_all: {
      const uint64_t part = c.count / world;
      for (Rank from = 0; from < world; from++) pieces.push_back(data.elements(from, {rank * part, part}));
      return pieces;
    }
    case Operation::gather:
    case Operation::all_gather:
      for (Rank from = 0; from < world; from++)
        pieces.push_back(data.elements(from, shard(c.count, world, from)));
      return pieces;
    case Operation::barrier:
      break;
  }
  return pieces;
}

inline std::shared_ptr<const schedule::Parts> one_part(uint64_t count) {
  return std::make_shared<schedule::Parts>(schedule::Parts{{0, count}, {0, count}});
}

/// What a rank's buffers hold of the whole vector.
inline std::pair<Extent, Extent> extents(const Case& c, uint32_t world, Rank rank) {
  const Extent whole{0, c.count}, own = shard(c.count, world, rank);
  const bool root = rank == c.root;
  switch (c.operation) {
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::all_to_all:
    case Operation::send_recv:
    case Operation::barrier:
      return {whole, whole};
    case Operation::reduce_scatter:
      return {whole, own};
    case Operation::all_gather:
      return {own, whole};
    case Operation::reduce:
      return {whole, root ? whole : Extent{}};
    case Operation::gather:
      return {own, root ? whole : Extent{}};
    case Operation::scatter:
      return {root ? whole : Extent{}, own};
  }
  return {};
}

inline engine::Call call_of(const Case& c, DataType type, uint32_t world, Rank rank) {
  engine::Call call{.operation = c.operation,
                    .algorithm = c.algorithm,
                    .type = type,
                    .reduction = c.reduction,
                    .count = c.count,
                    .root = c.root};
  if (c.operation != Operation::send_recv) return call;
  call.root = 0;
  call.to = (rank + c.root) % world;
  call.from = (rank + world - c.root) % world;
  call.parts = one_part(c.count);
  return call;
}

/// Runs the case on one rank; returns the number of wrong elements.
template <class T>
uint64_t run_rank(const Case& c, engine::Engine& engine, Rank rank, World& ranks, const Data<T>& data) {
  const uint32_t world = ranks.size();
  const auto [in, out] = extents(c, world, rank);
  // Only the root has both buffers.
  const bool rootless = is_rooted(c.operation) && c.operation != Operation::broadcast && rank != c.root;
  const bool in_place = c.in_place && !rootless;
  Guarded<T> whole(in_place ? c.count : 0, c.offset, ranks.buffer(rank, 0)),
      input(in_place ? 0 : in.count, c.offset, ranks.buffer(rank, 1)),
      output(in_place ? 0 : out.count, 2 * c.offset, ranks.buffer(rank, 2));
  Guarded<T>& source = in_place ? whole : input;
  Guarded<T>& result = in_place ? whole : output;
  const uint64_t in_at = in_place ? in.first : 0, out_at = in_place ? out.first : 0;
  const std::span<const T> given = data.elements(rank, in);
  source.set(in_at, given);
  engine::Call call = call_of(c, data_type_of<T>, world, rank);
  call.input = source.data() + in_at * sizeof(T);
  call.output = result.data() + out_at * sizeof(T);
  const auto outcome = engine.run(call, soon());
  if (!outcome) {
    if (outcome.error().code != ErrorCode::aborted) MESSAGE(outcome.error().message);
    ranks.fail_all();
    return 1;
  }
  uint64_t wrong = !whole.intact() + !input.intact() + !output.intact(), checked = 0;
  for (const std::span<const T> piece : expected(c, world, rank, out, data)) {
    wrong += result.differing(out_at + checked, piece);
    checked += piece.size();
  }
  wrong += out.count - checked;
  return wrong + (in_place ? 0 : input.differing(0, given));
}

/// Those whose reduction the type has.
template <class T>
void run_cases(World& world, std::vector<Case> cases, const DataSets<T>& data) {
  std::erase_if(cases, [](const Case& c) { return !is_defined(data_type_of<T>, c.reduction); });
  std::vector<std::atomic<uint64_t>> wrong(cases.size());
  world.run([&](Rank rank, engine::Engine& engine) {
    // After an error an engine must not run again, and the other ranks would wait for it: one failure ends
    // them all.
    for (size_t k = 0; k < cases.size(); k++) {
      wrong[k] += run_rank<T>(cases[k], engine, rank, world, data.at(cases[k].reduction));
      if (world.failure(rank).is_set()) return;
    }
  });
  for (size_t k = 0; k < cases.size(); k++)
    CHECK_MESSAGE(wrong[k] == 0, text(cases[k], world.size(), data_type_of<T>));
}

template <class T>
void run_cases(World& world, const std::vector<Case>& cases) {
  run_cases<T>(world, cases, data_for<T>(world.size(), cases));
}

inline std::vector<uint64_t> small_counts(uint32_t world) {
  return {0, 1, world - 1, world, world + 1, 1023};
}

inline std::vector<Reduction> unweighted() {
  std::vector<Reduction> some;
  for (const Reduction reduction : all_reductions)
    if (!is_weighted(reduction)) some.push_back(reduction);
  return some;
}

/// Every `step`-th rank; from one `turn` to the next other ones, so that `step` turns have them all.
inline std::vector<Rank> every(uint32_t step, uint32_t world, size_t turn) {
  std::vector<Rank> ranks;
  for (uint32_t k = 0; k < world; k += step) ranks.push_back(Rank((k + turn % step) % world));
  return ranks;
}

/// The product of schedules, reductions, counts and in place or out; misalignments and roots rotate through
/// it, and have all pairs of a root and in place or out. Of one algorithm, if it is named. There are as many of
/// one count as of another.
inline std::vector<Case> cases_for(uint32_t world, const std::vector<uint64_t>& counts,
                                   std::optional<Algorithm> only = {}) {
  std::vector<Case> cases;
  uint32_t turn = 0;
  const auto catalogue = schedule::catalogue();
  const auto reductions = unweighted();
  for (size_t c = 0; c < counts.size(); c++) {
    for (size_t k = 0; k < catalogue.size(); k++) {
      const auto operation = catalogue[k].operation;
      const auto algorithm = catalogue[k].algorithm;
      const uint64_t count = counts[c];
      if (only && algorithm != *only) continue;
      const auto add = [&](Reduction reduction, bool in_place, size_t root) {
        cases.push_back({operation, algorithm, reduction, count, in_place, turn++ % 3, Rank(root % world)});
      };
      switch (operation) {
        case Operation::all_reduce:
        case Operation::reduce_scatter:
          for (const Reduction reduction : reductions)
            for (const bool in_place : {false, true}) add(reduction, in_place, 0);
          break;
        case Operation::reduce:
          for (size_t r = 0; r < reductions.size(); r++) {
            const size_t pair = r + 5 * c + 3 * k;  // 5: as many reductions have all types
            add(reductions[r], pair % 2 == 0, pair / 2);
          }
          break;
        case Operation::all_gather:
          for (const bool in_place : {false, true}) add(Reduction::sum, in_place, 0);
          break;
        case Operation::gather:
        case Operation::scatter:
          for (const Rank root : every((world + 1) / 2, world, c))
            for (const bool in_place : {false, true}) add(Reduction::sum, in_place, root);
          break;
        case Operation::all_to_all:
          cases.push_back({operation, algorithm, Reduction::sum, count * world, false, turn++ % 3, 0});
          break;
        case Operation::send_recv:
          for (const Rank distance : every(world <= 3 ? 1 : 2, world, c))
            add(Reduction::sum, false, distance);
          break;
        case Operation::broadcast:
          for (const Rank root : every(world <= 3 ? 1 : 3, world, c + k)) add(Reduction::sum, true, root);
          break;
        case Operation::barrier:
          cases.push_back({operation, algorithm, Reduction::sum, 0, true, 0, 0});
          break;
      }
    }
  }
  return cases;
}

/// All cases that f32 has. Fourteen times as many would say little more: of the others each type takes every
/// operation, reduction and placement, but each of them at one count only, which rotates from case to case and
/// from type to type, so that every type meets every count.
inline void run_all_types(World& world, const std::vector<uint64_t>& counts,
                          std::optional<Algorithm> only = {}) {
  const std::vector<Case> cases = cases_for(world.size(), counts, only);
  run_cases<float>(world, cases);
  const size_t per_count = cases.size() / counts.size();
  size_t type = 0;
  const auto run = [&]<class T>(T) {
    std::vector<Case> some;
    for (size_t k = 0; k < per_count; k++) some.push_back(cases[(k + type) % counts.size() * per_count + k]);
    run_cases<T>(world, some);
    type++;
  };
  run(double()), run(float16()), run(bfloat16()), run(float8_e4m3()), run(float8_e5m2());
  run(int8_t()), run(uint8_t()), run(int16_t()), run(uint16_t());
  run(int32_t()), run(uint32_t()), run(int64_t()), run(uint64_t());
}

}  // namespace rondo::test
