#include "cli/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/root_address.hpp"
#include "cli/doctor/checks.hpp"
#include "cli/doctor/print.hpp"
#include "cli/doctor/probe.hpp"
#include "cli/doctor/process_state.hpp"

namespace rondo::cli {
namespace {

constexpr int all_well = 0, something_wrong = 1, run_time_failure = 3;

struct Given {
  doctor::Plan plan;
  pid_t pid = 0;
  bool json = false;
};

int write(const std::string& text, int code) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? code : run_time_failure;
}

int show_process(pid_t pid) {
  auto state = doctor::process_state(pid);
  if (!state) {
    fmt::print(stderr, "rondo doctor: {}\n", state.error().message);
    return something_wrong;
  }
  if (state->back() != '\n') *state += '\n';
  return write(*state, all_well);
}

int examine(const Given& given) {
  doctor::Plan plan = given.plan;
  if (plan.root.empty()) plan.root = process_environment("RONDO_ROOT").value_or("");
  const doctor::Machine machine = doctor::probe(plan);
  const doctor::Findings findings = doctor::judge(machine, plan);
  const bool wrong =
      std::ranges::find(findings, doctor::Severity::problem, &doctor::Finding::severity) != findings.end();
  return write(given.json ? doctor::as_json(findings, machine) : doctor::as_text(findings),
               wrong ? something_wrong : all_well);
}

std::string is_root(const std::string& text) {
  const auto root = parse_root(text);
  return root ? std::string() : text + ": " + root.error().message;
}

}  // namespace

CLI::App* add_doctor(CLI::App& app, std::function<int()>& action) {
  const auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what is wrong with this machine for a job, why it matters, and the fix");
  const auto ranks =
      command->add_option("-n,--ranks", given->plan.ranks, "ranks that are planned on this machine")
          ->check(CLI::Range(1u, largest_world));
  const auto root =
      command->add_option("--root", given->plan.root, "where rank 0 will be, HOST:PORT; else RONDO_ROOT")
          ->check(CLI::Validator(is_root, "HOST:PORT"));
  const auto json = command->add_flag("--json", given->json, "JSON, with all that was found out");
  command->add_option("--pid", given->pid, "print the state of a running process that uses Rondo, as JSON")
      ->check(CLI::Range(1, 1 << 22))
      ->excludes(ranks)
      ->excludes(root)
      ->excludes(json);
  command->callback([given, &action] {
    action = [given] { return given->pid > 0 ? show_process(given->pid) : examine(*given); };
  });
  return command;
}

}  // namespace rondo::cli
