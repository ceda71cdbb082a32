#include "train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "agree.hpp"
#include "corpus.hpp"
#include "elastic.hpp"
#include "optimizer.hpp"
#include "record.hpp"
#include "report.hpp"
#include "sample.hpp"
#include "state.hpp"
#include "step.hpp"
#include "text.hpp"

namespace trainer {
namespace {

using rondo::Communicator;
using rondo::Result;
using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

// What a rank needs before the first step.
struct Prepared {
  Corpus corpus;
  Report report;
};

Result<Prepared> prepare(const TrainOptions& options, rondo::Rank rank) {
  auto text = load_text(options.data);
  if (!text) return text.error();
  auto corpus = Corpus::create(std::move(*text), options.shape.context);
  if (!corpus) return corpus.error();
  Prepared ready{std::move(*corpus), Report(options.out, options.steps)};
  if (rank == 0)
    if (auto begun = ready.report.take_over(); !begun) return begun.error();
  return ready;
}

class Training {
 public:
  Training(Communicator& communicator, const TrainOptions& options, Gemm<float> gemm, const Corpus& corpus,
           Report& report, const std::vector<Fact>& facts)
      : communicator_(communicator),
        options_(options),
        corpus_(corpus),
        report_(report),
        facts_(facts),
        model_(options.shape, gemm),
        state_(model_.map(), {.weight_decay = options.weight_decay}),
        sum_(communicator),
        gradient_(model_.map().size(), even_buckets(model_.map().size(), options.buckets)) {
    std::ranges::copy(initial_parameters<float>(options.shape, options.seed),
                      state_.parameters.span().begin());
  }

  /// An error if the others have gone on without this rank, which would overwrite what they leave.
  Result<void> look_at_log();
  /// From where the ranks of the communicator stand to the end. `lost`: there were more of them before.
  Result<Outcome> run(const std::atomic<int>& interrupt, bool lost);
  /// Its state has been compared with the others' once: it can go on without some of them.
  bool begun() const { return state_.begun; }

 private:
  Result<void> begin(bool lost);
  void introduce() const;
  Result<bool> step(bool stop);
  Result<void> welcome_newcomers();
  void update();
  Result<void> finish();
  Result<void> leave_results(double held_out_loss);

  Communicator& communicator_;
  const TrainOptions& options_;
  const Corpus& corpus_;
  Report& report_;
  const std::vector<Fact>& facts_;
  Share share_;
  Model<float> model_;
  State state_;
  CommunicatorSum<float> sum_;
  StepGradient<float> gradient_;
  const Clock::time_point start_ = Clock::now();
  const std::filesystem::file_time_type born_ = std::filesystem::file_time_type::clock::now();
  std::vector<uint32_t> shrunk_to_;  // the ranks of communicators after losses
  bool results_there_ = false;       // left by a rank that was lost after that
  Clock::time_point trained_;        // the last step was done
};

Result<void> Training::look_at_log() {
  const std::string path = report_.log_path();
  const auto finished = finished_with_us(read_log(path, born_), path, state_.steps, options_.steps,
                                         report_.notes(), shrunk_to_);
  if (!finished) return finished.error();
  results_there_ = *finished;
  return {};
}

// Whoever is rank 0 now writes, unless all is written.
Result<void> Training::begin(bool lost) {
  share_ = {communicator_.rank(), communicator_.world(), options_.micro_batches, options_.seed,
            options_.sequences};
  if (lost) shrunk_to_.push_back(communicator_.world());
  if (auto caught_up = catch_up(communicator_, state_, report_); !caught_up) return caught_up;
  const Fact start{state_.steps == 0 ? "set of initial parameters" : "state", state_.digest()};
  if (auto agreed = agree(communicator_, true, {&start, 1}); !agreed) return agreed;
  if (results_there_) return {};
  if (communicator_.rank() == 0 && !report_.writes())
    if (auto begun = report_.take_over(); !begun) return begun;
  const bool before_all = !std::exchange(state_.begun, true) && state_.steps == 0;
  if (lost) return report_.changed({Change::shrunk, state_.steps + 1, communicator_.world()});
  if (before_all && report_.writes()) introduce();
  return {};
}

void Training::introduce() const {
  const Text& text = corpus_.text();
  if (text.substitute)
    fmt::print(stderr,
               "WARNING: the Bible is not installed (packages bible-kjv and bible-kjv-text), and no --data "
               "was given.\n"
               "WARNING: learning from GENERATED SENTENCES instead, which are far easier to predict.\n");
  const uint32_t world = communicator_.world();
  fmt::print("{}, {} parameters, {} tokens per step; text: {}, {} bytes, sha256 {}...\n",
             world == 1 ? "1 rank" : fmt::format("{} ranks over {}", world, communicator_.transport()),
             grouped(model_.map().size()), grouped(options_.sequences * uint64_t(options_.shape.context)),
             text.name, grouped(text.bytes.size()), text.sha256.substr(0, 12));
}

void Training::update() {
  const LearningRate rate{options_.learning_rate, options_.warmup, options_.steps};
  const std::span<float> gradient = gradient_.values(), parameters = state_.parameters.span();
  if (options_.clip > 0) clip(options_.clip, gradient);
  if (options_.optimizer == "sgd") return sgd_step<float>(rate.at(state_.steps), gradient, parameters);
  state_.adamw.step(rate.at(state_.steps), gradient, parameters);
}

// True when the training shall stop here.
Result<bool> Training::step(bool stop) {
  if (!options_.record.empty())
    if (auto recorded = record(options_.record, state_.steps, share_); !recorded) return recorded.error();
  const auto start = Clock::now();
  const auto done = mean_gradient<float>(model_, state_.parameters.span(), corpus_, share_, state_.steps,
                                         stop, sum_, gradient_);
  if (!done) return done.error();
  update();
  state_.steps++;
  const Seconds took = Clock::now() - start;
  const StepLine line{state_.steps, done->loss, done->targets / took.count(), done->waited / took};
  if (auto written = report_.step(line); !written) return written.error();
  return done->stop;
}

// All stand at the same step here. One that does not fit, which knows it too and ends, is lost like any other.
Result<void> Training::welcome_newcomers() {
  if (!options_.elastic) return {};
  const auto newcomers = wanted_newcomers(communicator_, options_.out + "/newcomers");
  if (!newcomers) return newcomers.error();
  if (*newcomers == 0 || !take_in(communicator_, *newcomers)) return {};
  const auto noted = report_.changed({Change::grown, state_.steps + 1, communicator_.world()});
  if (!noted) return noted;
  if (auto agreed = agree(communicator_, true, facts_); !agreed)
    return rondo::Error{rondo::ErrorCode::peer_lost, agreed.error().message, agreed.error().peer};
  return begin(false);
}

Result<Outcome> Training::run(const std::atomic<int>& interrupt, bool lost) {
  if (auto begun = begin(lost); !begun) return begun.error();
  while (state_.steps < options_.steps) {
    const auto stop = step(interrupt.load(std::memory_order_relaxed) != 0);
    trained_ = Clock::now();
    if (!stop) return stop.error();
    if (!*stop) {
      if (auto welcomed = welcome_newcomers(); !welcomed) return welcomed.error();
      continue;
    }
    if (report_.writes()) {
      fmt::print("interrupted after step {}\n", state_.steps);
      if (auto drawn = report_.plot(); !drawn) return drawn.error();
    }
    return Outcome::interrupted;
  }
  if (auto finished = finish(); !finished) return finished.error();
  return Outcome::finished;
}

Result<void> Training::finish() {
  CommunicatorSum<double> sum(communicator_);
  const auto loss = held_out_loss<float>(model_, state_.parameters.span(), corpus_, share_, sum);
  if (!loss) return loss.error();
  if (report_.writes() && !results_there_)
    if (auto left = leave_results(*loss); !left) return left;
  // If the rank that writes is lost before it is done, another one must still be there.
  return options_.elastic ? communicator_.barrier() : Result<void>();
}

Result<void> Training::leave_results(double held_out_loss) {
  const FinalLine line{held_out_loss,
                       options_.steps,
                       communicator_.world(),
                       model_.map().size(),
                       Seconds(trained_ - start_).count(),
                       corpus_.text().sha256,
                       std::string(communicator_.transport())};
  constexpr double temperature = 0.7;
  const std::string text =
      sample<float>(model_, state_.parameters.span(), "\n", 600, temperature, options_.seed) + "\n";
  // This rank may have been stopped since the others did their part.
  if (options_.elastic)
    if (auto looked = look_at_log(); !looked) return looked;
  return report_.final(line, text);
}

}  // namespace

Result<Outcome> train(Communicator& communicator, const TrainOptions& options, Gemm<float> gemm,
                      const std::atomic<int>& interrupt) {
  auto ready = prepare(options, communicator.rank());
  std::vector<Fact> facts{{"command line", options.agreed()},
                          {"text", ready ? ready->corpus.text().sha256 : ""}};
  std::optional<Training> training;
  // With the ranks that there are, to the end, or until one of them is lost.
  const auto live = [&](bool lost) -> Result<Outcome> {
    const auto looked = lost ? training->look_at_log() : Result<void>();
    const bool in_time = looked.ok() || communicator.rank() != 0;
    if (auto agreed = agree(communicator, ready.ok() && in_time, facts); !agreed)
      return !ready ? ready.error() : looked || survivable(agreed.error()) ? agreed.error() : looked.error();
    if (!training) training.emplace(communicator, options, gemm, ready->corpus, ready->report, facts);
    return training->run(interrupt, lost);
  };
  auto outcome = live(false);
  while (!outcome && options.elastic && training && training->begun() && survivable(outcome.error())) {
    fmt::print(stderr, "trainer: {}; the ranks that are left go on\n", outcome.error().message);
    auto rest = communicator.shrink();
    if (!rest) return rest.error();
    communicator = std::move(*rest);
    outcome = live(true);
  }
  return outcome;
}

}  // namespace trainer
