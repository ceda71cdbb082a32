#include "train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "agree.hpp"
#include "buffer.hpp"
#include "corpus.hpp"
#include "digest.hpp"
#include "optimizer.hpp"
#include "report.hpp"
#include "sample.hpp"
#include "step.hpp"
#include "text.hpp"

namespace trainer {
namespace {

using rondo::Communicator;
using rondo::Result;
using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

// What a rank needs before the first step. Only rank 0 has a report.
struct Prepared {
  Corpus corpus;
  std::optional<Report> report;
};

Result<Prepared> prepare(const TrainOptions& options, rondo::Rank rank) {
  auto text = load_text(options.data);
  if (!text) return text.error();
  auto corpus = Corpus::create(std::move(*text), options.shape.context);
  if (!corpus) return corpus.error();
  Prepared ready{std::move(*corpus), std::nullopt};
  if (rank == 0) {
    auto report = Report::create(options.out, options.steps);
    if (!report) return report.error();
    ready.report = std::move(*report);
  }
  return ready;
}

class Training {
 public:
  Training(Communicator& communicator, const TrainOptions& options, Gemm<float> gemm, const Corpus& corpus,
           std::optional<Report>& report)
      : communicator_(communicator),
        options_(options),
        corpus_(corpus),
        report_(report),
        share_{communicator.rank(), communicator.world(), options.micro_batches, options.seed,
               options.sequences},
        model_(options.shape, gemm),
        parameters_(model_.map().size()),
        sum_(communicator),
        gradient_(parameters_.span().size(), even_buckets(parameters_.span().size(), options.buckets)),
        adamw_(model_.map(), {.weight_decay = options.weight_decay}) {
    std::ranges::copy(initial_parameters<float>(options.shape, options.seed), parameters_.span().begin());
  }

  std::string parameter_digest() const {
    const auto bytes = std::as_bytes(parameters_.span());
    return sha256_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  Result<Outcome> run(const std::atomic<int>& interrupt);

 private:
  void introduce() const;
  Result<bool> step(uint64_t number, bool stop);
  void update(uint64_t number);
  Result<void> finish(Seconds duration);

  Communicator& communicator_;
  const TrainOptions& options_;
  const Corpus& corpus_;
  std::optional<Report>& report_;
  const Share share_;
  Model<float> model_;
  Buffer<float> parameters_;
  CommunicatorSum<float> sum_;
  StepGradient<float> gradient_;
  AdamW<float> adamw_;
};

void Training::introduce() const {
  const Text& text = corpus_.text();
  if (text.substitute)
    fmt::print(stderr,
               "WARNING: the Bible is not installed (packages bible-kjv and bible-kjv-text), and no --data "
               "was given.\n"
               "WARNING: learning from GENERATED SENTENCES instead, which are far easier to predict.\n");
  fmt::print("{} rank{}, {} parameters, {} tokens per step; text: {}, {} bytes, sha256 {}...\n",
             communicator_.world(), communicator_.world() == 1 ? "" : "s", grouped(parameters_.span().size()),
             grouped(options_.sequences * uint64_t(options_.shape.context)), text.name,
             grouped(text.bytes.size()), text.sha256.substr(0, 12));
}

void Training::update(uint64_t number) {
  const LearningRate rate{options_.learning_rate, options_.warmup, options_.steps};
  const std::span<float> gradient = gradient_.values(), parameters = parameters_.span();
  if (options_.clip > 0) clip(options_.clip, gradient);
  if (options_.optimizer == "sgd") return sgd_step<float>(rate.at(number), gradient, parameters);
  adamw_.step(rate.at(number), gradient, parameters);
}

// True when the training shall stop here.
Result<bool> Training::step(uint64_t number, bool stop) {
  const auto start = Clock::now();
  const auto done =
      mean_gradient<float>(model_, parameters_.span(), corpus_, share_, number, stop, sum_, gradient_);
  if (!done) return done.error();
  update(number);
  const Seconds took = Clock::now() - start;
  if (report_) {
    auto written = report_->step({number + 1, done->loss, done->targets / took.count(), done->waited / took});
    if (!written) return written.error();
  }
  return done->stop;
}

Result<Outcome> Training::run(const std::atomic<int>& interrupt) {
  if (report_) introduce();
  const auto start = Clock::now();
  for (uint64_t number = 0; number < options_.steps; number++) {
    const auto stop = step(number, interrupt.load(std::memory_order_relaxed) != 0);
    if (!stop) return stop.error();
    if (!*stop) continue;
    if (report_) {
      fmt::print("interrupted after step {}\n", number + 1);
      if (auto drawn = report_->plot(); !drawn) return drawn.error();
    }
    return Outcome::interrupted;
  }
  if (auto finished = finish(Clock::now() - start); !finished) return finished.error();
  return Outcome::finished;
}

Result<void> Training::finish(Seconds duration) {
  CommunicatorSum<double> sum(communicator_);
  const auto loss = held_out_loss<float>(model_, parameters_.span(), corpus_, share_, sum);
  if (!loss) return loss.error();
  if (!report_) return {};
  const FinalLine line{*loss,
                       options_.steps,
                       communicator_.world(),
                       parameters_.span().size(),
                       duration.count(),
                       corpus_.text().sha256,
                       std::string(communicator_.transport())};
  if (auto written = report_->final(line); !written) return written;
  if (auto drawn = report_->plot(); !drawn) return drawn;
  constexpr double temperature = 0.7;
  return report_->sample(sample<float>(model_, parameters_.span(), "\n", 600, temperature, options_.seed) +
                         "\n");
}

}  // namespace

Result<Outcome> train(Communicator& communicator, const TrainOptions& options, Gemm<float> gemm,
                      const std::atomic<int>& interrupt) {
  auto ready = prepare(options, communicator.rank());
  std::vector<Fact> facts{{"command line", options.agreed()},
                          {"text", ready ? ready->corpus.text().sha256 : ""}};
  if (auto agreed = agree(communicator, ready.ok(), facts); !agreed)
    return ready ? agreed.error() : ready.error();
  Training training(communicator, options, gemm, ready->corpus, ready->report);
  const Fact start{"set of initial parameters", training.parameter_digest()};
  if (auto agreed = agree(communicator, true, {&start, 1}); !agreed) return agreed.error();
  return training.run(interrupt);
}

}  // namespace trainer
