#include "train.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "agree.hpp"
#include "json_lines.hpp"

namespace mlp {
namespace {

using trainer::JsonLines;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// What a rank needs before the first step. Only rank 0 has a log.
struct Prepared {
  Data data;
  std::optional<JsonLines> log;
};

rondo::Result<Prepared> prepare(const TrainOptions& options, rondo::Rank rank) {
  auto data = load(options.data);
  if (!data) return data.error();
  Prepared ready{std::move(*data), std::nullopt};
  if (rank != 0) return ready;
  if (auto made = trainer::make_folder(options.out); !made) return made.error();
  auto log = JsonLines::create(options.out + "/mlp.jsonl");
  if (!log) return log.error();
  ready.log = std::move(*log);
  return ready;
}

std::string agreed(const TrainOptions& options) {
  const Settings& settings = options.settings;
  return fmt::format("epochs {} hidden {} seed {} batch {} micro-batches {} lr {} momentum {}",
                     options.settings.epochs, options.hidden, settings.seed, settings.batch,
                     settings.micro_batches, settings.learning_rate, settings.momentum);
}

// The epochs. Returns the last one's accuracy.
rondo::Result<double> learn(rondo::Communicator& communicator, const TrainOptions& options,
                            Learner<float>& learner, Prepared& ready) {
  trainer::CommunicatorSum<float> sum(communicator);
  trainer::CommunicatorSum<double> count(communicator);
  double accuracy = 0;
  for (uint64_t number = 0; number < options.settings.epochs; number++) {
    const auto start = Clock::now();
    const auto epoch = learner.epoch(ready.data.train, number, sum);
    if (!epoch) return epoch.error();
    const Seconds took = Clock::now() - start;
    const auto right = learner.accuracy(ready.data.test, count);
    if (!right) return right.error();
    accuracy = *right;
    if (!ready.log) continue;
    fmt::print("epoch {} / {}   loss {:.4f}   test accuracy {:.2f} %   {:.2f} s   communication {:.0f} %\n",
               number + 1, options.settings.epochs, epoch->loss, 100 * accuracy, took.count(),
               100 * (epoch->waited / took));
    std::fflush(stdout);
    auto written = ready.log->write({{"epoch", number + 1},
                                     {"loss", epoch->loss},
                                     {"test_accuracy", accuracy},
                                     {"seconds", took.count()},
                                     {"communication_share", epoch->waited / took}});
    if (!written) return written.error();
  }
  return accuracy;
}

}  // namespace

rondo::Result<void> train(rondo::Communicator& communicator, const TrainOptions& options,
                          trainer::Gemm<float> gemm) {
  auto ready = prepare(options, communicator.rank());
  const std::string sha256 = ready ? ready->data.sha256() : "";
  const trainer::Fact facts[]{{"command line", agreed(options)}, {"set of images", sha256}};
  if (auto same = trainer::agree(communicator, ready.ok(), facts); !same)
    return ready ? same.error() : ready.error();

  Settings settings = options.settings;
  settings.rank = communicator.rank();
  settings.world = communicator.world();
  Learner<float> learner(Network<float>({int(ready->data.train.size()), options.hidden, 10}, gemm), settings);
  if (ready->log)
    fmt::print("{} rank{}, {} parameters; images: {}, {} to learn from, {} to test with\n", settings.world,
               settings.world == 1 ? "" : "s", learner.parameters().size(), ready->data.name,
               ready->data.train.count(), ready->data.test.count());

  const auto start = Clock::now();
  const auto accuracy = learn(communicator, options, learner, *ready);
  if (!accuracy) return accuracy.error();
  if (!ready->log) return {};
  fmt::print("Written: {}/mlp.jsonl\n", options.out);
  return ready->log->write({{"final", true},
                            {"test_accuracy", *accuracy},
                            {"epochs", options.settings.epochs},
                            {"ranks", settings.world},
                            {"parameters", learner.parameters().size()},
                            {"seconds", Seconds(Clock::now() - start).count()},
                            {"data_sha256", sha256},
                            {"transport", std::string(communicator.transport())}});
}

}  // namespace mlp
