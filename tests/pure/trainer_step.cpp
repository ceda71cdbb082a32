// The gradient of a step: in which order micro-batches are added, and when which bucket goes off.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "step_gradient.hpp"

using namespace trainer;

namespace {

// Keeps what was started as offsets into the gradient, the extras in front being negative, and what it held then.
class Recorder final : public RankSum<float> {
 public:
  explicit Recorder(StepGradient<float>& gradient) : gradient_(gradient) {}
  void start(std::span<float> data) override {
    const long first = data.data() - gradient_.values().data();
    ranges.emplace_back(first, first + long(data.size()));
    contents.emplace_back(data.begin(), data.end());
  }
  rondo::Result<void> wait() override { return {}; }

  std::vector<std::pair<long, long>> ranges;
  std::vector<std::vector<float>> contents;

 private:
  StepGradient<float>& gradient_;
};

// The canonical tree over terms [first, last), by its definition: the left part is the largest power of two.
float tree(const std::vector<float>& terms, size_t first, size_t last) {
  if (last - first == 1) return terms[first];
  size_t half = 1;
  while (2 * half < last - first) half *= 2;
  return tree(terms, first, first + half) + tree(terms, first + half, last);
}

}  // namespace

TEST_CASE("step: micro-batches are added over the canonical tree, however many") {
  const std::vector<float> all{1e8f, 3, -1e8f, 5, 1e8f, -7, 2, -1e8f, 1, 1e8f, 9};
  StepGradient<float> gradient(4, even_buckets(4, 2));
  bool order_matters = false;
  for (uint32_t count = 1; count <= all.size(); count++) {
    CAPTURE(count);
    Recorder sum(gradient);
    gradient.begin(count, sum);
    float plain = 0;
    for (uint32_t i = 0; i < count; i++) {
      const auto values = gradient.next();
      for (float& each : values) CHECK(std::exchange(each, all[i]) == 0);
      gradient.complete(3);  // in pieces, which are no bucket's
      gradient.complete(1);
      gradient.end({double(all[i]), 1});
      plain += all[i];
    }
    const std::vector<float> terms(all.begin(), all.begin() + count);
    const float expected = tree(terms, 0, count);
    order_matters |= plain != expected;
    REQUIRE(sum.contents.size() == 2);
    CHECK(sum.contents[0] == std::vector<float>{expected, expected});
    const auto mean = gradient.mean();
    REQUIRE(mean.ok());
    CHECK(mean->targets == count);
    CHECK(mean->loss == double(expected * (1.0f / float(count))));
    for (const float each : gradient.values()) CHECK(each == expected * (1.0f / float(count)));
  }
  CHECK(order_matters);
}

TEST_CASE(
    "step: a bucket goes off when all of it is complete, in the last micro-batch, the last bucket first") {
  StepGradient<float> gradient(100, {0, 10, 40, 40, 70});
  Recorder sum(gradient);
  using Ranges = std::vector<std::pair<long, long>>;
  gradient.begin(2, sum, true);
  gradient.next();
  gradient.complete(0);
  gradient.end({3, 2});
  CHECK(sum.ranges.empty());
  gradient.next();
  gradient.complete(71);
  CHECK(sum.ranges.empty());
  gradient.complete(70);
  CHECK(sum.ranges == Ranges{{70, 100}});
  gradient.complete(15);
  CHECK(sum.ranges == Ranges{{70, 100}, {40, 70}, {40, 40}});
  gradient.complete(0);  // the loss is still to come
  CHECK(sum.ranges == Ranges{{70, 100}, {40, 70}, {40, 40}, {10, 40}});
  gradient.end({5, 2});
  CHECK(sum.ranges == Ranges{{70, 100}, {40, 70}, {40, 40}, {10, 40}, {-16, 10}});
  const auto mean = gradient.mean();
  REQUIRE(mean.ok());
  CHECK(mean->loss == 2);
  CHECK(mean->targets == 4);
  CHECK(mean->stop);
  CHECK(mean->waited.count() >= 0);
}

TEST_CASE("step: even buckets cover everything, also when there are more than parameters") {
  CHECK(even_buckets(10, 1) == std::vector<size_t>{0});
  CHECK(even_buckets(10, 3) == std::vector<size_t>{0, 4, 7});
  CHECK(even_buckets(2, 5) == std::vector<size_t>{0, 1});
  CHECK(even_buckets(0, 3) == std::vector<size_t>{0});
}
