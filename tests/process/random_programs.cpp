// Random sequences of operations on several communicators, checked element by element against a model that
// needs no other process: every rank makes the same program from the seed, and knows everybody's data.
//
//   rondo run -n N -- random_programs SEED FIRST COUNT
//
// Prints the seed and the sequence that goes wrong, and exits 1.
#include <fmt/format.h>

#include <cstdlib>

#include "random_sequence.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

// The job's communicator and others made from it and from each other, in changing ways.
class Family {
 public:
  static constexpr size_t size = 5;

  explicit Family(Communicator job) { members_[0] = std::move(job); }

  std::vector<Communicator*> members() {
    std::vector<Communicator*> all;
    for (auto& member : members_) all.push_back(member ? &*member : nullptr);
    return all;
  }
  // Puts another one in a place; the job's own stays. What is wrong, or nothing.
  std::string change(Dice& dice) {
    // Most from the job's own: parts of parts soon have one rank or none.
    const size_t from = dice.one_in(4) ? dice.below(size) : 0, to = 1 + dice.below(size - 1);
    const uint64_t how = dice.below(3);
    Dice parts(dice.below(UINT64_MAX));
    if (!members_[from]) {
      // Made from one in which this rank is not.
      members_[to].reset();
      return "";
    }
    auto made = how == 0 ? duplicate(*members_[from]) : split(*members_[from], parts);
    if (!made) return made.error().message;
    if (*made && (*made)->parent_ranks() != expected_) return "its ranks are not those that it should have";
    members_[to] = std::move(*made);
    return "";
  }

 private:
  Result<std::optional<Communicator>> duplicate(Communicator& of) {
    expected_.clear();
    for (Rank rank = 0; rank < of.world(); rank++) expected_.push_back(rank);
    auto made = of.duplicate();
    if (!made) return made.error();
    return std::optional(std::move(*made));
  }
  // Colors 1 and 2, and 0 for none; the lower key comes first.
  Result<std::optional<Communicator>> split(Communicator& of, Dice& dice) {
    std::vector<std::pair<int64_t, Rank>> alike[3];
    std::vector<uint64_t> colors;
    std::vector<int64_t> keys;
    for (Rank rank = 0; rank < of.world(); rank++) {
      colors.push_back(dice.one_in(12) ? 0 : 1 + dice.below(2));
      keys.push_back(int64_t(dice.below(5)) - 2);
      alike[colors.back()].emplace_back(keys.back(), rank);
    }
    const uint64_t own = colors[of.rank()];
    std::ranges::sort(alike[own]);
    expected_.clear();
    for (const auto& [key, rank] : alike[own]) expected_.push_back(rank);
    return of.split(own == 0 ? std::nullopt : std::optional(uint32_t(own)), keys[of.rank()]);
  }

  std::optional<Communicator> members_[size];
  std::vector<Rank> expected_;
};

}  // namespace

int main(int, char** arguments) {
  const uint64_t seed = std::strtoull(arguments[1], nullptr, 10),
                 first = std::strtoull(arguments[2], nullptr, 10),
                 count = std::strtoull(arguments[3], nullptr, 10);
  auto comm = Communicator::from_environment();
  if (!comm) return fmt::print("{}\n", comm.error().message), 1;
  const Rank rank = comm->rank();
  const auto wrong = [&](uint64_t k, const std::string& what) {
    fmt::print("seed {} sequence {}: rank {}: {}\n", seed, k, rank, what);
    return 1;
  };
  Family family(std::move(*comm));
  Dice changes(seed * 1'000'003 + first);
  for (uint64_t k = first; k < first + count; k++) {
    for (uint64_t times = k == first ? 6 : k % 5 == 0 ? 1 : 0; times > 0; times--)
      if (const auto what = family.change(changes); !what.empty()) return wrong(k, what);
    const Outcome outcome = run_sequence(family.members(), seed * 1'000'003 + k, small_count);
    if (!outcome.right())
      return wrong(
          k, fmt::format("{}: {}", outcome.what,
                         outcome.error ? outcome.error->message : fmt::format("{} wrong", outcome.wrong)));
  }
  if (rank == 0) fmt::print("seed {}: sequences {} to {} right\n", seed, first, first + count - 1);
  return 0;
}
