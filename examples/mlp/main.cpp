// mlp: a perceptron that tells clothes apart (Fashion-MNIST), on the ranks of a job, its gradients averaged by rondo.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <new>
#include <stdexcept>
#include <variant>

#include "command_line.hpp"
#include "rondo/rondo.hpp"
#include "train.hpp"

namespace {

// The options, or the code to exit with: 0 after --help, 2 when something is wrong; the text is then printed.
std::variant<mlp::TrainOptions, int> parse(int argc, const char* const* argv) {
  using trainer::amount, trainer::count;
  mlp::TrainOptions options;
  CLI::App app("Trains a perceptron on all ranks of a job: rondo run -n 4 build/mlp", "mlp");
  const auto add = [&app](const char* name, auto& target, const char* meaning, const CLI::Validator& check) {
    app.add_option(name, target, meaning)->check(check)->capture_default_str();
  };
  add("--epochs", options.settings.epochs, "times that every image is learned from", count(1'000'000));
  add("--batch", options.settings.batch, "images per step, over all ranks", count(1 << 20));
  add("--micro-batches", options.settings.micro_batches, "parts in which a rank works through its share",
      count(65536));
  add("--lr", options.settings.learning_rate, "learning rate at first; it falls to a tenth", amount(10));
  add("--momentum", options.settings.momentum, "part of the last step that goes into the next", amount(1));
  add("--hidden", options.hidden, "width of the hidden layer", count(65536));
  app.add_option("--seed", options.settings.seed, "of initial parameters and data order")
      ->capture_default_str();
  app.add_option("--data", options.data, "folder of the images, or 'generated'")->capture_default_str();
  app.add_option("--out", options.out, "folder for mlp.jsonl")->capture_default_str();
  trainer::add_transport(app, options.transport);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
  }
  return options;
}

int fail(const rondo::Error& error) {
  fmt::print(stderr, "mlp: {}\n", error.message);
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto parsed = parse(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<mlp::TrainOptions>(parsed);

  const auto choice = trainer::choose_gemm<float>();
  rondo::Options job;
  job.transport = options.transport;
  auto communicator = rondo::Communicator::from_environment(job);
  if (!communicator) return fail(communicator.error());
  if (choice.warning && communicator->rank() == 0) fmt::print(stderr, "WARNING: {}\n", *choice.warning);
  if (auto done = mlp::train(*communicator, options, choice.gemm); !done) return fail(done.error());
  return EXIT_SUCCESS;
} catch (const std::bad_alloc&) {
  fmt::print(stderr, "mlp: not enough memory\n");
  return EXIT_FAILURE;
} catch (const std::runtime_error& error) {
  fmt::print(stderr, "mlp: {}\n", error.what());
  return EXIT_FAILURE;
}
