// The rondo command. Every subcommand is added by one function, which says what to do when it is chosen.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <new>

#include "cli/bench/bench.hpp"
#include "cli/doctor/doctor.hpp"
#include "cli/explain.hpp"
#include "cli/run.hpp"
#include "cli/tune.hpp"

int main(int argc, char** argv) {
  constexpr int usage_error = 2, run_time_failure = 3;
  CLI::App app("Rondo: collective communication for trainers in C++", "rondo");
  app.set_version_flag("--version", "rondo " RONDO_VERSION);
  app.require_subcommand(1);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::function<int()> action;
  rondo::cli::add_run(app, action);
  rondo::cli::add_bench(app, arguments, action);
  rondo::cli::add_tune(app, arguments, action);
  rondo::cli::add_explain(app, action);
  rondo::cli::add_doctor(app, action);
  try {
    app.parse(rondo::cli::protect_separator(arguments));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_error;  // 0: help was asked for
  }
  try {
    return action();
  } catch (const std::bad_alloc&) {
    std::fputs("rondo: not enough memory\n", stderr);
    return run_time_failure;
  }
}
