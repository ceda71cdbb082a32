#include "cli/explain_selection.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "engine/selection.hpp"
#include "engine/tuning.hpp"

namespace rondo::cli {
namespace {

using engine::Tuning;
using schedule::Algorithm;
using schedule::Operation;

constexpr std::array operations{Operation::all_reduce, Operation::reduce_scatter, Operation::reduce,
                                Operation::all_gather, Operation::broadcast,      Operation::gather,
                                Operation::scatter,    Operation::all_to_all,     Operation::send_recv,
                                Operation::barrier};
constexpr uint64_t elements_of_any = uint64_t(1) << 40;

// Of f32 sums, as a communicator without RONDO_ALGORITHM chooses.
Algorithm chosen(Operation operation, uint64_t elements, const SelectionOf& given, const Tuning& tuning) {
  const engine::Call call{.operation = operation, .count = elements};
  const auto tuned = tuning.find(operation, 4 * elements);
  if (tuned && engine::can_run(call, *tuned)) return *tuned;
  return engine::select(call, {given.world, given.transport == "shm"});
}

// The most elements, from `elements` on, for which the choice is the same.
uint64_t last_alike(Operation operation, uint64_t elements, const SelectionOf& given, const Tuning& tuning) {
  const Algorithm algorithm = chosen(operation, elements, given, tuning);
  uint64_t same = elements, step = 1;
  for (; same + step < elements_of_any && chosen(operation, same + step, given, tuning) == algorithm;
       step *= 2)
    same += step;
  for (; step > 0; step /= 2)
    if (same + step <= elements_of_any && chosen(operation, same + step, given, tuning) == algorithm)
      same += step;
  return same;
}

}  // namespace

int explain_selection(const SelectionOf& given) {
  Tuning tuning;
  const char* note = "";
  if (!given.tuning.empty()) {
    auto read = engine::read_tuning(given.tuning);
    if (!read) return fmt::print(stderr, "rondo explain: {}\n", read.error().message), 2;
    const bool fits = read->situation() == Tuning::Situation{given.world, given.transport};
    note = fits ? ", as tuned" : "; the tuning file is for another job";
    if (fits) tuning = *read;
  }
  fmt::print(
      "# {} ranks over {}, f32 sums{}\n# operation, up to so many bytes of the whole vector, algorithm\n",
      given.world, given.transport, note);
  for (const Operation operation : operations) {
    for (uint64_t elements = 0; elements < elements_of_any;) {
      const uint64_t last = last_alike(operation, elements, given, tuning);
      fmt::print("{} {} {}\n", name_of(operation), last >= elements_of_any ? "max" : std::to_string(4 * last),
                 name_of(chosen(operation, elements, given, tuning)));
      elements = last + 1;
    }
  }
  return 0;
}

}  // namespace rondo::cli
