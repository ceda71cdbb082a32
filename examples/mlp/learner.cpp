#include "learner.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "random.hpp"

namespace mlp {

// Fisher and Yates.
std::vector<uint32_t> epoch_order(uint64_t seed, uint64_t epoch, uint32_t samples) {
  std::vector<uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t left = samples; left > 1; left--)
    std::swap(order[left - 1],
              order[trainer::random_below({seed, trainer::stream::epochs + epoch, left}, left)]);
  return order;
}

template <class T>
Learner<T>::Learner(Network<T> network, const Settings& settings)
    : settings_(settings),
      network_(std::move(network)),
      parameters_(network_.parameters()),
      gradient_(network_.parameters(), network_.layers()),
      velocity_(network_.parameters()) {
  std::ranges::copy(network_.initial(settings.seed), parameters_.span().begin());
}

template <class T>
Batch<T> Learner<T>::batch_of(const Images& images, std::span<const uint32_t> samples) const {
  Batch<T> batch;
  batch.pixels.reserve(samples.size() * images.size());
  for (const uint32_t sample : samples) {
    for (const uint8_t pixel : images.image(sample)) batch.pixels.push_back(T(pixel) / T(255));
    batch.labels.push_back(images.labels[sample]);
  }
  return batch;
}

template <class T>
rondo::Result<trainer::StepMean> Learner<T>::step(const Images& images, std::span<const uint32_t> samples,
                                                  double rate, RankSum<T>& sum) {
  const uint32_t parts = settings_.micro_batches;
  gradient_.begin(parts, sum);
  for (uint32_t i = 0; i < parts; i++) {
    const rondo::Extent own =
        rondo::shard(samples.size(), settings_.world * parts, settings_.rank * parts + i);
    const auto batch = batch_of(images, samples.subspan(own.first, own.count));
    const auto values = gradient_.next();
    gradient_.end(network_.loss_and_gradient(parameters_.span(), batch, values,
                                             [&](size_t first) { gradient_.complete(first); }));
  }
  auto mean = gradient_.mean();
  if (!mean) return mean;
  const T keep = T(settings_.momentum);
  const auto parameters = parameters_.span(), gradient = gradient_.values();
  for (size_t i = 0; i < parameters.size(); i++) {
    velocity_[i] = keep * velocity_[i] + gradient[i];
    parameters[i] -= T(rate) * velocity_[i];
  }
  return mean;
}

template <class T>
rondo::Result<EpochReport> Learner<T>::epoch(const Images& images, uint64_t number, RankSum<T>& sum) {
  const auto order = epoch_order(settings_.seed, number, images.count());
  const uint64_t steps = (order.size() + settings_.batch - 1) / settings_.batch;
  const trainer::LearningRate rate{settings_.learning_rate, 0, settings_.epochs * steps};
  EpochReport report;
  for (uint64_t first = 0; first < order.size(); first += settings_.batch) {
    const auto samples = std::span(order).subspan(first, std::min(settings_.batch, order.size() - first));
    const auto mean = step(images, samples, rate.at(number * steps + first / settings_.batch), sum);
    if (!mean) return mean.error();
    report.loss += mean->loss * mean->targets;
    report.waited += mean->waited;
  }
  report.loss /= double(images.count());
  return report;
}

template <class T>
uint64_t Learner<T>::right_of(const Images& images, std::span<const uint32_t> samples) {
  const auto batch = batch_of(images, samples);
  const auto logits = network_.forward(parameters_.span(), batch);
  const auto classes = size_t(network_.classes());
  uint64_t right = 0;
  for (size_t i = 0; i < batch.labels.size(); i++) {
    const auto row = logits.subspan(i * classes, classes);
    right += std::ranges::max_element(row) - row.begin() == batch.labels[i];
  }
  return right;
}

template <class T>
rondo::Result<double> Learner<T>::accuracy(const Images& images, RankSum<double>& sum) {
  constexpr uint64_t at_once = 256;
  const rondo::Extent mine = rondo::shard(images.count(), settings_.world, settings_.rank);
  std::vector<uint32_t> samples(mine.count);
  std::iota(samples.begin(), samples.end(), uint32_t(mine.first));
  std::array<double, 1> right{};
  for (uint64_t done = 0; done < mine.count; done += at_once)
    right[0] +=
        double(right_of(images, std::span(samples).subspan(done, std::min(at_once, mine.count - done))));
  sum.start(right);
  if (auto done = sum.wait(); !done) return done.error();
  return right[0] / images.count();
}

template class Learner<float>;
template class Learner<double>;

}  // namespace mlp
