// A small model on the generated text: the whole of a training step, on one rank.
#include <doctest/doctest.h>

#include "optimizer.hpp"
#include "sample.hpp"
#include "step.hpp"
#include "text.hpp"

using namespace trainer;

TEST_CASE("learning: 30 steps of a small model on generated text lower the held-out loss by two nats") {
  const ModelShape shape{1, 32, 2, 32};
  auto corpus = Corpus::create(Text{"generated", generate_text(60000), ""}, shape.context);
  REQUIRE(corpus.ok());
  const Share share{.sequences = 16};
  Model<float> model(shape, choose_gemm<float>().gemm);
  auto parameters = initial_parameters<float>(shape, 1);
  StepGradient<float> gradient(parameters.size(), even_buckets(parameters.size(), 3));
  NoSum<float> sum;
  NoSum<double> loss_sum;
  AdamW<float> adamw(model.map(), {});
  const auto loss = [&] { return *held_out_loss<float>(model, parameters, *corpus, share, loss_sum); };
  const double before = loss();
  CHECK(before > 5.4);
  for (uint64_t step = 0; step < 30; step++) {
    const auto done = mean_gradient<float>(model, parameters, *corpus, share, step, false, sum, gradient);
    REQUIRE(done.ok());
    CHECK(done->targets == 16 * 32);
    adamw.step(0.02, gradient.values(), parameters);
  }
  CHECK(loss() < before - 2);
  const std::string text = sample<float>(model, parameters, "\n", 50, 0.7, 1);
  CHECK(text.size() == 50);
  CHECK(text == sample<float>(model, parameters, "\n", 50, 0.7, 1));
  CHECK(text != sample<float>(model, parameters, "\n", 50, 0.7, 2));
}

TEST_CASE("sample: the most probable byte at a low temperature") {
  const ModelShape shape{1, 8, 1, 4};
  Model<float> model(shape, gemm_reference<float>);
  auto parameters = initial_parameters<float>(shape, 1);
  const std::string text = sample<float>(model, parameters, "ab", 1, 1e-6, 1);
  const auto logits = model.logits(parameters, Batch{1, {'a', 'b'}, {no_target, no_target}}).last(256);
  CHECK(uint8_t(text[0]) == std::max_element(logits.begin(), logits.end()) - logits.begin());
}
