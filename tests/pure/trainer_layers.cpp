// Every layer's backward against finite differences of its forward, in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "gemm.hpp"
#include "layers/attention.hpp"
#include "layers/cross_entropy.hpp"
#include "layers/embedding.hpp"
#include "layers/gelu.hpp"
#include "layers/layernorm.hpp"
#include "layers/linear.hpp"
#include "model.hpp"
#include "random.hpp"

using namespace trainer;
using Vector = std::vector<double>;

namespace {

constexpr double tolerance = 1e-8;
constexpr auto gemm = gemm_reference<double>;

Vector noise(size_t count, uint64_t stream) {
  Vector values(count);
  for (size_t i = 0; i < count; i++) values[i] = random_normal({11, stream, i});
  return values;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
  return sum;
}

// d loss / d x[i] by central differences at two distances, combined so that the error falls with h^4.
double slope(const std::function<double()>& loss, double& x) {
  constexpr double h = 1e-3;
  const double before = x;
  const auto at = [&](double shift) {
    x = before + shift;
    return loss();
  };
  const double wide = (at(2 * h) - at(-2 * h)) / (4 * h), narrow = (at(h) - at(-h)) / (2 * h);
  x = before;
  return (4 * narrow - wide) / 3;
}

// The largest difference between `gradient` and the slopes of `loss` over every `stride`-th element of x,
// relative to the largest slope.
double error_of(const Vector& gradient, Vector& x, const std::function<double()>& loss, size_t stride = 1) {
  REQUIRE(gradient.size() == x.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < x.size(); i += stride) {
    const double expected = slope(loss, x[i]);
    worst = std::max(worst, std::abs(gradient[i] - expected));
    largest = std::max(largest, std::abs(expected));
  }
  REQUIRE(largest > 0);
  return worst / largest;
}

// The gradient's buffers start with something, so that a backward that should add and overwrites is seen.
struct Added {
  Vector start, values;
  explicit Added(size_t count) : start(noise(count, 99)), values(start) {}
  Vector sum() const {
    Vector difference(values);
    for (size_t i = 0; i < start.size(); i++) difference[i] -= start[i];
    return difference;
  }
};

}  // namespace

TEST_CASE("linear: gradient") {
  const LinearSize size{5, 7, 3};
  Vector x = noise(35, 1), weight = noise(21, 2), bias = noise(3, 3), residual = noise(15, 4), y(15);
  const Vector dy = noise(15, 5);
  const auto loss = [&] {
    linear_forward(gemm, size, x.data(), weight.data(), bias.data(), residual.data(), y.data());
    return dot(y, dy);
  };
  Vector dx(35, std::numeric_limits<double>::quiet_NaN());
  Added dweight(21), dbias(3);
  linear_backward(gemm, size, x.data(), weight.data(), dy.data(), dx.data(), dweight.values.data(),
                  dbias.values.data());
  CHECK(error_of(dx, x, loss) < tolerance);
  CHECK(error_of(dweight.sum(), weight, loss) < tolerance);
  CHECK(error_of(dbias.sum(), bias, loss) < tolerance);
  CHECK(error_of(dy, residual, loss) < tolerance);
}

TEST_CASE("layernorm: gradient, and what a forgotten term would do") {
  const NormSize size{4, 19};
  Vector x = noise(76, 1), gain = noise(19, 2), bias = noise(19, 3), xhat(76), inverse(4), y(76);
  const Vector dy = noise(76, 4);
  const auto loss = [&] {
    layernorm_forward(size, x.data(), gain.data(), bias.data(), xhat.data(), inverse.data(), y.data());
    return dot(y, dy);
  };
  loss();
  Added dx(76), dgain(19), dbias(19);
  layernorm_backward(size, xhat.data(), inverse.data(), gain.data(), dy.data(), dx.values.data(),
                     dgain.values.data(), dbias.values.data());
  const Vector right = dx.sum(), xhat_before = xhat, inverse_before = inverse;
  CHECK(error_of(right, x, loss) < tolerance);
  CHECK(error_of(dgain.sum(), gain, loss) < tolerance);
  CHECK(error_of(dbias.sum(), bias, loss) < tolerance);

  Vector no_mean = right, no_spread = right;
  for (int row = 0; row < size.rows; row++) {
    double mean = 0, spread = 0;
    for (int i = 0; i < size.width; i++) {
      const int at = row * size.width + i;
      mean += dy[at] * gain[i] / size.width;
      spread += dy[at] * gain[i] * xhat_before[at] / size.width;
    }
    for (int i = 0; i < size.width; i++) {
      const int at = row * size.width + i;
      no_mean[at] += mean * inverse_before[row];
      no_spread[at] += xhat_before[at] * spread * inverse_before[row];
    }
  }
  CHECK(error_of(no_mean, x, loss) > 1e-3);
  CHECK(error_of(no_spread, x, loss) > 1e-3);
}

TEST_CASE("gelu: gradient, and the gate alone is not it") {
  Vector x = noise(64, 1), gate(64), y(64);
  for (double& each : x) each *= 2;
  const Vector dy = noise(64, 2);
  const auto loss = [&] {
    gelu_forward(x.size(), x.data(), gate.data(), y.data());
    return dot(y, dy);
  };
  loss();
  Vector dx = dy, gate_only = dy;
  gelu_backward(x.size(), x.data(), gate.data(), dx.data());
  for (size_t i = 0; i < x.size(); i++) gate_only[i] *= gate[i];
  CHECK(error_of(dx, x, loss) < tolerance);
  CHECK(error_of(gate_only, x, loss) > 1e-3);
}

TEST_CASE("gelu: values") {
  const Vector x{-3, -1, 0, 1, 3},
      expected{-0.0036373920817729943, -0.15880800939172324, 0, 0.8411919906082768, 2.996362607918227};
  Vector gate(5), y(5);
  gelu_forward(5, x.data(), gate.data(), y.data());
  for (size_t i = 0; i < 5; i++) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

TEST_CASE("embedding: gradient, with a symbol that occurs twice") {
  const EmbeddingSize size{2, 3, 4};
  const std::vector<int32_t> tokens{1, 0, 1, 4, 4, 2};
  Vector table = noise(20, 1), position = noise(12, 2), y(24);
  const Vector dy = noise(24, 3);
  const auto loss = [&] {
    embedding_forward(size, tokens.data(), table.data(), position.data(), y.data());
    return dot(y, dy);
  };
  Added dtable(20), dposition(12);
  embedding_backward(size, tokens.data(), dy.data(), dtable.values.data(), dposition.values.data());
  CHECK(error_of(dtable.sum(), table, loss) < tolerance);
  CHECK(error_of(dposition.sum(), position, loss) < tolerance);
}

TEST_CASE("cross entropy: gradient; a place without target counts for nothing") {
  const std::vector<int32_t> targets{2, no_target, 0, 6};
  Vector logits = noise(28, 1);
  const auto loss = [&] {
    Vector scratch = logits;
    const LossSum sum = cross_entropy(4, 7, targets.data(), scratch.data());
    CHECK(sum.targets == 3);
    return sum.loss;
  };
  Vector dlogits = logits;
  cross_entropy(4, 7, targets.data(), dlogits.data());
  CHECK(error_of(dlogits, logits, loss) < tolerance);
  for (int i = 7; i < 14; i++) CHECK(dlogits[i] == 0);
}

TEST_CASE("cross entropy: certain and even predictions") {
  const std::vector<int32_t> targets{3};
  Vector even(8, 5.0), certain(8, 0.0);
  certain[3] = 800;
  CHECK(cross_entropy(1, 8, targets.data(), even.data()).loss == doctest::Approx(std::log(8.0)));
  CHECK(cross_entropy(1, 8, targets.data(), certain.data()).loss == doctest::Approx(0.0));
}

TEST_CASE("attention: gradient, and what a forgotten term would do") {
  const AttentionSize size{2, 5, 6, 2};
  Vector qkv = noise(2 * 5 * 18, 1), weights(size.weights()), y(60);
  const Vector dy = noise(60, 2);
  const auto loss = [&] {
    attention_forward<double>(gemm, size, qkv.data(), weights.data(), y.data());
    return dot(y, dy);
  };
  loss();
  Vector dqkv(qkv.size(), std::numeric_limits<double>::quiet_NaN()), scratch(25);
  attention_backward<double>(gemm, size, qkv.data(), weights.data(), dy.data(), dqkv.data(), scratch.data());
  CHECK(error_of(dqkv, qkv, loss) < tolerance);

  Vector unscaled = dqkv, values_only = dqkv;
  for (size_t i = 0; i < dqkv.size(); i++) {
    if (i % 18 < 12) unscaled[i] *= std::sqrt(3.0);
    if (i % 18 < 12) values_only[i] = 0;
  }
  CHECK(error_of(unscaled, qkv, loss) > 1e-3);
  CHECK(error_of(values_only, qkv, loss) > 1e-3);
}

TEST_CASE("attention: no place sees a later one") {
  const AttentionSize size{1, 6, 4, 2};
  Vector qkv = noise(6 * 12, 1), weights(size.weights()), y(24), changed(24);
  attention_forward<double>(gemm, size, qkv.data(), weights.data(), y.data());
  for (int i = 4 * 12; i < 6 * 12; i++) qkv[i] += 1;
  attention_forward<double>(gemm, size, qkv.data(), weights.data(), changed.data());
  for (int i = 0; i < 16; i++) CHECK(y[i] == changed[i]);
  for (int i = 16; i < 24; i++) CHECK(y[i] != changed[i]);
}

TEST_CASE("model: the whole gradient, with a place without target") {
  const ModelShape shape{2, 8, 2, 6};
  Model<double> model(shape, gemm);
  Vector parameters = initial_parameters<double>(shape, 3);
  for (size_t i = 0; i < parameters.size(); i++) parameters[i] += 0.3 * random_normal({5, 0, i});
  Batch batch{2, {}, {}};
  for (uint64_t i = 0; i < 12; i++) {
    batch.tokens.push_back(int32_t(random_below({6, 0, i}, 256)));
    batch.targets.push_back(i == 4 ? no_target : int32_t(random_below({6, 1, i}, 256)));
  }
  Added gradient(parameters.size());
  const LossSum sum = model.loss_and_gradient(parameters, batch, std::span(gradient.values));
  CHECK(sum.targets == 11);
  const auto loss = [&] { return model.loss(parameters, batch).loss; };
  CHECK(error_of(gradient.sum(), parameters, loss, 13) < tolerance);
  for (const Tensor& tensor : model.map().tensors()) {  // no tensor is hidden behind larger ones
    if (tensor.role == Role::embedding) continue;       // most of its rows are not used
    double worst = 0, largest = 0;
    for (size_t i = tensor.offset; i < tensor.offset + tensor.size(); i += tensor.size() / 7 + 1) {
      const double expected = slope(loss, parameters[i]);
      worst = std::max(worst, std::abs(gradient.values[i] - gradient.start[i] - expected));
      largest = std::max(largest, std::abs(expected));
    }
    INFO(tensor.name);
    CHECK(worst <= 1e-7 * largest);
  }
}

TEST_CASE("model: the main job's shape has 141,056 parameters, in forward order without gaps") {
  const ParameterMap map(ModelShape{});
  CHECK(map.size() == 141056);
  size_t next = 0;
  for (const Tensor& tensor : map.tensors()) {
    CHECK(tensor.offset == next);
    next += tensor.size();
  }
  CHECK(next == map.size());
  CHECK(map.table == 0);
  CHECK(map.head_weight + 64 * 256 == map.size());
}

TEST_CASE("model: at first every byte is about equally likely") {
  const ModelShape shape;
  Model<float> model(shape, gemm_reference<float>);
  const auto parameters = initial_parameters<float>(shape, 1);
  const Batch batch{1, {72, 101, 108, 108, 111}, {101, 108, 108, 111, 33}};
  const LossSum sum = model.loss(parameters, batch);
  CHECK(sum.loss / double(sum.targets) == doctest::Approx(std::log(256.0)).epsilon(0.05));
}

TEST_CASE("exponential: float within 2e-7 of the truth, clamped outside, NaN stays NaN") {
  double worst = 0;
  for (float x = -87; x < 88; x += 0.00317f)
    worst = std::max(worst, std::abs(double(exponential(x)) / std::exp(double(x)) - 1));
  CHECK(worst < 2e-7);
  CHECK(exponential(0.0f) == 1);
  CHECK(exponential(-1000.0f) < 2e-38f);
  CHECK(exponential(-1000.0f) > 0);
  CHECK(std::isfinite(exponential(1000.0f)));
  CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("sum_of and max_of: every count, every element") {
  for (int count = 1; count <= 70; count++) {
    std::vector<double> values(static_cast<size_t>(count));
    for (int i = 0; i < count; i++) values[size_t(i)] = -1 - i;
    CHECK(sum_of<double>(count, [&](int i) { return values[size_t(i)]; }) == -count * (count + 1) / 2.0);
    for (int i = 0; i < count; i++) {
      std::vector<double> one = values;
      one[size_t(i)] = 5;
      CHECK(max_of(count, one.data()) == 5);
    }
  }
}
