#include "cli/run.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/launch.hpp"

namespace rondo::cli {
namespace {

// No shell and no user writes this.
const std::string separator_mark = "\x01--";

// PROGRAM and its arguments; only a "--" before PROGRAM was the launcher's own.
std::vector<std::string> command_from(std::vector<std::string> rest) {
  const auto mark = std::find(rest.begin(), rest.end(), separator_mark);
  const bool marked_first = mark != rest.end() && mark == rest.begin();
  if (marked_first)
    rest.erase(mark);
  else if (mark != rest.end())
    *mark = "--";
  if (!marked_first && !rest.empty() && rest.front().substr(0, 1) == "-")
    throw CLI::ExtrasError({rest.front()});
  if (rest.empty() || rest.front().empty()) throw CLI::RequiredError("PROGRAM");
  return rest;
}

}  // namespace

std::vector<std::string> protect_separator(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "run")
    if (const auto found = std::find(arguments.begin(), arguments.end(), "--"); found != arguments.end())
      *found = separator_mark;
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

CLI::App* add_run(CLI::App& app, std::function<int()>& action) {
  struct Arguments {
    LaunchSpec spec;
    double timeout_s = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* run = app.add_subcommand("run",
                                     "Start N copies of a program as the ranks of a job on this machine:\n"
                                     "rondo run -n N [--timeout S] [--elastic] [--] PROGRAM [ARGS...]");
  run->add_option("-n", arguments->spec.ranks, "Number of ranks")->required()->check(CLI::Range(1, 1024));
  run->add_option("--timeout", arguments->timeout_s,
                  "End the job after this many seconds, with exit code 124")
      ->check(CLI::Range(0.001, 1e6));
  run->add_flag("--elastic", arguments->spec.elastic, "When a rank fails, say so and let the others go on");
  run->footer(
      "Exit code: 0 when all ranks end well, else that of the rank that failed first (128 + the signal's "
      "number),\n"
      "124 after the timeout, 127 when PROGRAM cannot be executed, 2 for wrong usage. With --elastic: 0 when "
      "all\n"
      "ranks that remain end well, else the code of the first of them that fails; that of the last rank "
      "when\n"
      "none remains.");
  // PROGRAM and all that follows, options included, belong to the program.
  run->prefix_command();
  run->callback([run, arguments, &action] {
    auto& spec = arguments->spec;
    spec.command = command_from(run->remaining());
    if (arguments->timeout_s > 0)
      spec.timeout = std::chrono::milliseconds(std::llround(arguments->timeout_s * 1000));
    action = [arguments] { return launch(arguments->spec); };
  });
  return run;
}

}  // namespace rondo::cli
