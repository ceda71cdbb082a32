#include "cli/explain.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/explain_job.hpp"
#include "cli/explain_selection.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/print.hpp"

namespace rondo::cli {
namespace {

using schedule::Schedule;
using Names = std::vector<std::string>;

constexpr uint32_t largest_printed_world = 16384;

struct Arguments {
  std::string operation, algorithm;
  uint32_t world = 0, root = 0;
  std::optional<uint32_t> rank;
  std::vector<uint32_t> nodes;  // of every rank; empty: all on one
  bool json = false, selection = false;
  pid_t pid = 0;
  std::string type = "f32", reduction = "sum";  // of a selection
  SelectionOf selection_of;
};

void add(Names& names, std::string_view name) {
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}
Names operations() {
  Names names;
  for (const Schedule& entry : schedule::catalogue()) add(names, name_of(entry.operation));
  return names;
}
// Those of one operation, or all.
Names algorithms(std::string_view operation = {}) {
  Names names;
  for (const Schedule& entry : schedule::catalogue())
    if (operation.empty() || name_of(entry.operation) == operation) add(names, name_of(entry.algorithm));
  return names;
}
template <class Values>
Names names_of(const Values& values) {
  Names names;
  for (const auto value : values) add(names, name_of(value));
  return names;
}
// The one of that name, which is there.
template <class Values>
auto named(const Values& values, std::string_view name) {
  return std::ranges::find_if(values, [&](auto value) { return name_of(value) == name; });
}
std::string listed(const Names& names) { return CLI::detail::join(names, ", "); }

[[noreturn]] void refuse(const std::string& option, const std::string& what) {
  throw CLI::ValidationError(option, what);
}

void check_nodes(const Arguments& given) {
  if (!given.nodes.empty() && given.nodes.size() != given.world)
    refuse("--nodes",
           std::to_string(given.nodes.size()) + " numbers for " + std::to_string(given.world) + " ranks");
}

void check_fits(const Schedule& entry, const Arguments& given) {
  // Of a send_recv the root is how far every rank sends.
  if (given.root > 0 && !is_rooted(entry.operation) && entry.operation != schedule::Operation::send_recv)
    refuse("--root", given.operation + " has no root");
  if (!given.nodes.empty() && entry.algorithm != schedule::Algorithm::hierarchical)
    refuse("--nodes", "only hierarchical looks at nodes");
  check_nodes(given);
}

// The same of a selection, whose names are known to be names.
void check_selection(Arguments& given) {
  check_nodes(given);
  SelectionOf& of = given.selection_of;
  of.world = given.world;
  of.nodes = given.nodes;
  for (const Schedule& entry : schedule::catalogue())
    if (name_of(entry.operation) == given.operation) of.operation = entry.operation;
  of.type = *named(all_data_types, given.type);
  of.reduction = *named(all_reductions, given.reduction);
  if (!is_defined(of.type, of.reduction))
    refuse("--op", "there is no " + given.reduction + " of " + given.type);
  const bool moves = of.operation && !schedule::reduces(*of.operation);
  if (moves && (of.reduction != Reduction::sum || of.reproducible))
    refuse(of.reproducible ? "--reproducible" : "--op", given.operation + " reduces nothing");
}

// Checks what concerns more than one option; throws CLI::ValidationError.
const Schedule& chosen(const Arguments& given) {
  if (given.rank && *given.rank >= given.world)
    refuse("--rank", std::to_string(*given.rank) + " is not in 0 .. " + std::to_string(given.world - 1));
  if (given.root >= given.world)
    refuse("--root", std::to_string(given.root) + " is not in 0 .. " + std::to_string(given.world - 1));
  for (const Schedule& entry : schedule::catalogue())
    if (name_of(entry.operation) == given.operation && name_of(entry.algorithm) == given.algorithm) {
      check_fits(entry, given);
      return entry;
    }
  refuse("--algorithm",
         given.operation + " has no " + given.algorithm + ", it has: " + listed(algorithms(given.operation)));
}

int explain(const Arguments& given, const Schedule& entry) {
  const auto print = given.json ? schedule::print_json : schedule::print_text;
  const auto write = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  print(entry, {.world = given.world, .root = given.root, .nodes = given.nodes}, given.rank, write);
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? 0 : 3;
}

// Like CLI::IsMember, but the message is ours.
CLI::Validator one_of(const Names& names) {
  const auto check = [names](const std::string& value) {
    if (std::ranges::find(names, value) != names.end()) return std::string();
    return value + " is not one of: " + listed(names);
  };
  return CLI::Validator(check, listed(names));
}

using Options = std::vector<CLI::Option*>;

// Of the steps of one schedule.
Options add_steps(CLI::App& command, Arguments& given) {
  return {
      command.add_option("--algorithm", given.algorithm, "How it does it")->check(one_of(algorithms())),
      command.add_option("--rank", given.rank, "Only the steps of this rank"),
      command
          .add_option("--root", given.root,
                      "Root of a broadcast, scatter, reduce or gather; of a send_recv how far all send")
          ->capture_default_str(),
      command.add_flag("--json", given.json, "JSON, with buffers and flags"),
  };
}

Options add_selection(CLI::App& command, Arguments& given) {
  CLI::Option* selection =
      command.add_flag("--selection", given.selection,
                       "In place of steps: which algorithm every operation runs up to which size");
  SelectionOf& of = given.selection_of;
  return {
      selection,
      command.add_option("--transport", of.transport, "tcp or shm, for --selection")
          ->check(one_of({"tcp", "shm"}))
          ->capture_default_str(),
      command.add_option("--tuning", of.tuning, "A file of rondo tune, for --selection"),
      command.add_option("--cores", of.cores, "Cores of a node, for --selection")
          ->check(CLI::Range(1u, 1u << 16))
          ->capture_default_str(),
      command.add_option("--type", given.type, "Element type, for --selection")
          ->check(one_of(names_of(all_data_types)))
          ->capture_default_str(),
      command.add_option("--op", given.reduction, "Reduction, for --selection")
          ->check(one_of(names_of(all_reductions)))
          ->capture_default_str(),
      command.add_flag("--reproducible", of.reproducible, "Of reproducible calls, for --selection"),
  };
}

// Of both.
Options add_job(CLI::App& command, Arguments& given) {
  return {
      command.add_option("--world", given.world, "Number of ranks; needed without --pid")
          ->check(CLI::Range(1u, largest_printed_world)),
      command
          .add_option("--nodes", given.nodes,
                      "The node of every rank, for hierarchical and --selection: 0,0,1,1")
          ->delimiter(','),
      command
          .add_option("--operation", given.operation,
                      "What the schedule does (all_reduce), or the only line of --selection")
          ->check(one_of(operations())),
  };
}

void add_options(CLI::App& command, Arguments& given) {
  const Options steps = add_steps(command, given), selection = add_selection(command, given),
                job = add_job(command, given);
  CLI::Option* pid = command.add_option(
      "--pid", given.pid,
      "In place of steps: why this running process uses its interface, transport and algorithms");
  for (CLI::Option* option : steps) selection[0]->excludes(option);
  for (size_t i = 1; i < selection.size(); ++i) selection[i]->needs(selection[0]);
  for (const Options& others : {steps, selection, job})
    for (CLI::Option* option : others) pid->excludes(option);
}

}  // namespace

CLI::App* add_explain(CLI::App& app, std::function<int()>& action) {
  const auto given = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("explain",
                                         "Print the steps of a schedule (rank round kind peer chunk), what "
                                         "is selected, or why a job runs as it does");
  add_options(*command, *given);
  command->callback([given, &action] {
    if (given->pid > 0) {
      action = [given] { return explain_job(given->pid); };
      return;
    }
    if (given->world == 0) throw CLI::RequiredError("--world");
    if (given->selection) {
      check_selection(*given);
      action = [given] { return explain_selection(given->selection_of); };
      return;
    }
    if (given->algorithm.empty()) throw CLI::RequiredError("--algorithm (or --selection)");
    if (given->operation.empty()) given->operation = "all_reduce";
    const Schedule& entry = chosen(*given);
    action = [given, &entry] { return explain(*given, entry); };
  });
  return command;
}

}  // namespace rondo::cli
