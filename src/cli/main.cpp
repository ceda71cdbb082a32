// The rondo command. Each subcommand is added by one function, which says what to do when it is chosen.
#include <CLI/CLI.hpp>
#include <functional>

#include "cli/explain.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Rondo: collective communication for trainers in C++", "rondo"};
  app.require_subcommand(1);
  std::function<int()> action;
  rondo::cli::add_explain(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    constexpr int usage = 2;
    return app.exit(error) == 0 ? 0 : usage;  // 0: help was asked for
  }
  return action();
}
