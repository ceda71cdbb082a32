// The rondo command. Every subcommand is one file that registers itself; its action runs after parsing.
#include <CLI/CLI.hpp>
#include <functional>

#include "run.hpp"

int main(int argc, char** argv) {
  constexpr int usage_error = 2;
  CLI::App app("Rondo: collective communication for trainers in C++", "rondo");
  app.set_version_flag("--version", "rondo " RONDO_VERSION);
  app.require_subcommand(1);
  std::function<int()> action;
  rondo::cli::add_run(app, action);
  try {
    app.parse(rondo::cli::protect_separator({argv + 1, argv + argc}));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_error;
  }
  return action();
}
