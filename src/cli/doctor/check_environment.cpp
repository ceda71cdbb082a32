// RONDO_ variables: each one, then what is right by itself and wrong together.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/launcher.hpp"
#include "cli/doctor/checks.hpp"
#include "cli/doctor/judge_variables.hpp"

namespace rondo::cli::doctor {
namespace {

// How many letters differ (Levenshtein), by rows of the table.
size_t distance(std::string_view one, std::string_view other) {
  std::vector<size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < one.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < other.size(); ++j) {
      const size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

Finding unknown(const std::string& name) {
  const auto nearest = std::ranges::min_element(
      variable_names, {}, [&](std::string_view known) { return distance(name, known); });
  const size_t letters = nearest->size() - std::string_view("RONDO_").size();
  if (3 * distance(name, *nearest) <= letters)
    return warning(fmt::format("{} is no variable of Rondo's", name), "it has no effect",
                   fmt::format("did you mean {}?", *nearest));
  return note(fmt::format("{} is no variable of Rondo's", name), "Rondo does not look at it",
              "unset it, unless your program reads it");
}

// What is right by itself and wrong together, or never right outside tests.
void check_together(const Lookup& lookup, const Plan& plan, Findings& found) {
  if (const auto fault = lookup("RONDO_FAULT"))
    found.push_back(warning("RONDO_FAULT=" + *fault,
                            "faults are injected into the job, on purpose: ranks die or stall",
                            "unset it, unless you test how your program takes failures"));
  if (is_rank(lookup))
    if (const auto options = resolve({}, lookup); !options)
      found.push_back(problem(options.error().message,
                              "this process counts as a rank, and would end with this",
                              "set what is missing on every rank, or start them with rondo run"));
  if (const auto text = contradiction(lookup))
    found.push_back(warning(*text,
                            "a rank or world size of another job makes ranks claim each other's places",
                            "unset the variables that are left over"));
  if (lookup("RONDO_SECRET") && lookup("RONDO_SECRET_FILE"))
    found.push_back(
        note("RONDO_SECRET and RONDO_SECRET_FILE are both set",
             "RONDO_SECRET counts; where another machine sets only the file, ranks refuse each other",
             "unset one of them on every machine"));
  const auto world = lookup("RONDO_WORLD");
  if (world && plan.ranks && std::atol(world->c_str()) < long(*plan.ranks))
    found.push_back(problem(fmt::format("RONDO_WORLD={}, and {} ranks are planned", *world, *plan.ranks),
                            "ranks from RONDO_WORLD on are refused", "unset it: the launcher sets it"));
}

}  // namespace

Findings check_environment(const Machine& machine, const Plan& plan) {
  Findings found;
  size_t set = 0;
  for (const auto& [name, value] : machine.variables) {
    if (!name.starts_with("RONDO_") || value.empty()) continue;
    set++;
    if (std::ranges::find(variable_names, name) == variable_names.end()) found.push_back(unknown(name));
  }
  const Judgement judgement = judge_variables(machine, plan);
  found.insert(found.end(), judgement.found.begin(), judgement.found.end());
  if (!machine.tuning_error.empty())
    found.push_back(problem("RONDO_TUNING: " + machine.tuning_error, "rank 0, which reads it, ends at once",
                            "write it anew with rondo tune, or unset RONDO_TUNING"));
  check_together(lookup_in(judgement.right), plan, found);
  if (found.empty())
    found.push_back(ok(set == 0
                           ? "no RONDO_ variable is set"
                           : fmt::format("{} RONDO_ variable{} set, rightly", set, set == 1 ? "" : "s")));
  return found;
}

}  // namespace rondo::cli::doctor
