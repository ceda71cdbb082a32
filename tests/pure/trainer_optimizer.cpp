#include <doctest/doctest.h>

#include <cmath>

#include "optimizer.hpp"

using namespace trainer;

TEST_CASE("adamw: three steps as in the paper, decay on matrices only") {
  const ModelShape shape{1, 2, 1, 1};
  const ParameterMap map(shape);
  AdamW<double> adamw(map, {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.5});
  std::vector<double> parameters(map.size(), 1.0), gradients(map.size());
  const size_t matrix = map.blocks[0].qkv_weight, gain = map.norm_gain;
  double m = 0, v = 0, expected_matrix = 1, expected_gain = 1;
  for (int t = 1; t <= 3; t++) {
    const double g = 0.3 * t - 0.7, rate = 0.01 * t;
    gradients.assign(map.size(), g);
    adamw.step(rate, gradients, parameters);
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    const double move = rate * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
    expected_matrix = expected_matrix - rate * 0.5 * expected_matrix - move;
    expected_gain -= move;
    CHECK(parameters[matrix] == doctest::Approx(expected_matrix).epsilon(1e-12));
    CHECK(parameters[gain] == doctest::Approx(expected_gain).epsilon(1e-12));
  }
}

TEST_CASE("sgd: steps against the gradient") {
  std::vector<float> parameters{1, 2}, gradients{4, -8};
  sgd_step<float>(0.25, gradients, parameters);
  CHECK(parameters == std::vector<float>{0, 4});
}

TEST_CASE("clip: shortens what is too long, leaves the rest") {
  std::vector<double> gradient{3, 4};
  clip<double>(10, gradient);
  CHECK(gradient == std::vector<double>{3, 4});
  clip<double>(1, gradient);
  CHECK(gradient[0] == doctest::Approx(0.6));
  CHECK(gradient[1] == doctest::Approx(0.8));
}

TEST_CASE("learning rate: rises to its peak, falls to a tenth") {
  const LearningRate rate{1.0, 4, 104};
  CHECK(rate.at(0) == doctest::Approx(0.25));
  CHECK(rate.at(3) == doctest::Approx(1.0));
  CHECK(rate.at(54) == doctest::Approx(0.55));
  CHECK(rate.at(104) == doctest::Approx(0.1));
  CHECK(LearningRate{1.0, 50, 10}.at(9) == doctest::Approx(0.2));  // shorter than the warm-up
}
