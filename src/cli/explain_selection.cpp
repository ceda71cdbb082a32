#include "cli/explain_selection.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "base/cores.hpp"
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
constexpr uint64_t elements_of_any = uint64_t(1) << 40, large_bytes = uint64_t(1) << 30;

// As a communicator without RONDO_ALGORITHM chooses.
class Chooser {
 public:
  Chooser(const SelectionOf& given, const Tuning& tuning)
      : given_(given),
        selection_({given.world, given.transport == "shm", given.cores, given.nodes}),
        tuning_(tuning) {}

  Algorithm chosen(Operation operation, uint64_t elements) {
    const engine::Call call = call_of(operation, elements);
    const auto tuned = tuning_.find(operation, elements * size_of(given_.type));
    return tuned && engine::can_run(call, *tuned) ? *tuned : selection_.choose(call);
  }

  // The most elements, from `elements` on, for which the choice is the same.
  uint64_t last_alike(Operation operation, uint64_t elements) {
    const Algorithm algorithm = chosen(operation, elements);
    uint64_t same = elements, step = 1;
    for (; same + step < elements_of_any && chosen(operation, same + step) == algorithm; step *= 2)
      same += step;
    for (; step > 0; step /= 2)
      if (same + step <= elements_of_any && chosen(operation, same + step) == algorithm) same += step;
    return same;
  }

  // What the model predicts for the chosen one and the quickest of the others.
  std::string predicted(Operation operation, uint64_t elements) {
    const Algorithm algorithm = chosen(operation, elements);
    std::string text;
    size_t others = 0;
    const auto all = selection_.candidates(call_of(operation, elements));
    if (all.size() == 1) return "";
    for (const bool other : {false, true})
      for (const auto& candidate : all)
        if ((candidate.algorithm != algorithm) == other && (!other || others++ == 0))
          text += other ? fmt::format(", {} {}", name_of(candidate.algorithm), duration(candidate.ns))
                        : duration(candidate.ns);
    return text;
  }

 private:
  static std::string duration(double ns) { return fmt::format("{:.1f}", ns / 1000); }
  engine::Call call_of(Operation operation, uint64_t elements) const {
    return {.operation = operation,
            .type = given_.type,
            .reduction = given_.reduction,
            .count = elements,
            .reproducible = given_.reproducible};
  }

  const SelectionOf& given_;
  engine::Selection selection_;
  const Tuning& tuning_;
};

std::optional<Tuning> tuning_for(const SelectionOf& about, const std::string& table) {
  if (table.empty()) return std::nullopt;
  const auto tuning = Tuning::parse(table);
  if (!tuning || tuning->situation() != Tuning::Situation{about.world, about.transport}) return std::nullopt;
  return *tuning;
}

}  // namespace

uint32_t cores_here() noexcept { return uint32_t(usable_cores()); }

bool is_tuned_by(const SelectionOf& about, const std::string& table) {
  return tuning_for(about, table).has_value();
}

void print_selection(const SelectionOf& about, const std::string& table, const char* indent) {
  const Tuning tuning = tuning_for(about, table).value_or(Tuning{});
  const uint64_t bytes = size_of(about.type);
  Chooser chooser(about, tuning);
  for (const Operation operation : operations) {
    if (about.operation && operation != *about.operation) continue;
    const bool sized = operation != Operation::barrier;
    for (uint64_t elements = 0; elements < elements_of_any;) {
      const uint64_t last = sized ? chooser.last_alike(operation, elements) : elements_of_any;
      const bool ends = last < elements_of_any;
      const auto predicted = chooser.predicted(operation, ends ? last : sized ? large_bytes / bytes : 0);
      fmt::print("{}{} {} {}{}{}\n", indent, name_of(operation), ends ? std::to_string(bytes * last) : "max",
                 name_of(chooser.chosen(operation, elements)), predicted.empty() ? "" : "  # ", predicted);
      elements = last + 1;
    }
  }
}

int explain_selection(const SelectionOf& given) {
  std::string table;
  const char* note = "";
  if (!given.tuning.empty()) {
    const auto read = engine::read_tuning(given.tuning);
    if (!read) return fmt::print(stderr, "rondo explain: {}\n", read.error().message), 2;
    table = read->text();
    note = is_tuned_by(given, table) ? ", as tuned" : "; the tuning file is for another job";
  }
  fmt::print("# {} ranks over {}, {} cores on a node, {} {}{}{}\n", given.world, given.transport, given.cores,
             name_of(given.type), given.reduction == Reduction::sum ? "sums" : name_of(given.reduction),
             given.reproducible ? ", reproducible" : "", note);
  fmt::print(
      "# operation, up to so many bytes of the whole vector, algorithm; predicted us at that size, or at 1 "
      "GiB,\n"
      "# and what the second would take\n");
  print_selection(given, table);
  return 0;
}

}  // namespace rondo::cli
