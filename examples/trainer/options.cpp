#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <limits>

#include "command_line.hpp"
#include "corpus.hpp"

namespace trainer {
namespace {

void declare_training(CLI::App& app, TrainOptions& options) {
  const auto add = [&app](const char* name, auto& target, const char* meaning, const CLI::Validator& check) {
    app.add_option(name, target, meaning)->check(check)->capture_default_str();
  };
  add("--steps", options.steps, "optimizer steps", count(1'000'000'000));
  add("--batch", options.sequences, "sequences per step, over all ranks", count(65536));
  add("--micro-batches", options.micro_batches, "parts in which a rank works through its share",
      count(65536));
  add("--buckets", options.buckets, "parts of the gradient that are sent off as soon as they are complete",
      count(4096));
  add("--optimizer", options.optimizer, "adamw or sgd", CLI::IsMember({"adamw", "sgd"}));
  add("--lr", options.learning_rate, "highest learning rate", amount(10));
  add("--warmup", options.warmup, "steps in which the learning rate rises", count(1'000'000'000));
  add("--weight-decay", options.weight_decay, "of matrices, AdamW only", amount(10));
  add("--clip", options.clip, "longest gradient; 0: any", amount(1e9));
  add("--layers", options.shape.layers, "transformer blocks", count(1000));
  add("--channels", options.shape.channels, "width of the residual stream", count(65536));
  add("--heads", options.shape.heads, "attention heads", count(65536));
  add("--context", options.shape.context, "bytes per sequence", count(Corpus::block_bytes));
  app.add_option("--seed", options.seed, "of initial parameters and data order")->capture_default_str();
}

void declare(CLI::App& app, TrainOptions& options) {
  app.add_option("--data", options.data,
                 "the text: a file, 'bible' or 'generated'; else the Bible where it is installed");
  app.add_option("--out", options.out, "folder for log.jsonl, loss.svg and sample.txt")
      ->capture_default_str();
  add_transport(app, options.transport);
  app.add_flag("--elastic", options.elastic,
               "when ranks are lost, the others redo the step and go on (start with rondo run --elastic); "
               "takes newcomers in");
  app.add_option("--record", options.record,
                 "a file to which every rank adds which sequences it works through, a line per step");
  declare_training(app, options);
}

void check(const TrainOptions& options) {
  const ModelShape& shape = options.shape;
  if (shape.channels % shape.heads != 0)
    throw CLI::ValidationError(
        "--heads", fmt::format("{} heads cannot share {} channels evenly", shape.heads, shape.channels));
  // The number of tokens travels as a float beside the gradient.
  constexpr uint64_t most = uint64_t(1) << std::numeric_limits<float>::digits;
  if (options.sequences * uint64_t(shape.context) > most)
    throw CLI::ValidationError(
        "--batch", fmt::format("{} sequences of {} bytes are more than {} tokens per step", options.sequences,
                               shape.context, most));
}

}  // namespace

std::string TrainOptions::agreed() const {
  return fmt::format(
      "steps {} seed {} batch {} micro-batches {} buckets {} optimizer {} lr {} warmup {} weight-decay {} "
      "clip {} "
      "layers {} channels {} heads {} context {} elastic {}",
      steps, seed, sequences, micro_batches, buckets, optimizer, learning_rate, warmup, weight_decay, clip,
      shape.layers, shape.channels, shape.heads, shape.context, elastic);
}

std::variant<TrainOptions, int> parse(int argc, const char* const* argv) {
  TrainOptions options;
  CLI::App app("Trains a byte-level GPT on all ranks of a job: rondo run -n 4 build/trainer", "trainer");
  declare(app, options);
  try {
    app.parse(argc, argv);
    check(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
  }
  return options;
}

}  // namespace trainer
