#include "step.hpp"

#include <algorithm>
#include <array>

namespace trainer {

template <class T>
rondo::Result<StepMean> mean_gradient(Model<T>& model, std::span<const T> parameters, const Corpus& corpus,
                                      const Share& share, uint64_t step, bool stop, RankSum<T>& sum,
                                      StepGradient<T>& gradient) {
  gradient.begin(share.micro_batches, sum, stop);
  for (uint32_t i = 0; i < share.micro_batches; i++) {
    const Batch batch = corpus.training_batch(share.seed, step, share.sequences_of(i));
    const auto values = gradient.next();
    gradient.end(
        model.loss_and_gradient(parameters, batch, values, [&](size_t first) { gradient.complete(first); }));
  }
  return gradient.mean();
}

template <class T>
rondo::Result<double> held_out_loss(Model<T>& model, std::span<const T> parameters, const Corpus& corpus,
                                    const Share& share, RankSum<double>& sum) {
  constexpr uint64_t at_once = 8;
  const rondo::Extent mine = rondo::shard(corpus.held_out_windows(), share.world, share.rank);
  std::array<double, 2> sums{};
  for (uint64_t done = 0; done < mine.count; done += at_once) {
    const rondo::Extent part{mine.first + done, std::min(at_once, mine.count - done)};
    const LossSum loss = model.loss(parameters, corpus.held_out_batch(part));
    sums[0] += loss.loss;
    sums[1] += double(loss.targets);
  }
  sum.start(sums);
  if (auto done = sum.wait(); !done) return done.error();
  return sums[0] / sums[1];
}

template rondo::Result<StepMean> mean_gradient(Model<float>&, std::span<const float>, const Corpus&,
                                               const Share&, uint64_t, bool, RankSum<float>&,
                                               StepGradient<float>&);
template rondo::Result<StepMean> mean_gradient(Model<double>&, std::span<const double>, const Corpus&,
                                               const Share&, uint64_t, bool, RankSum<double>&,
                                               StepGradient<double>&);
template rondo::Result<double> held_out_loss(Model<float>&, std::span<const float>, const Corpus&,
                                             const Share&, RankSum<double>&);
template rondo::Result<double> held_out_loss(Model<double>&, std::span<const double>, const Corpus&,
                                             const Share&, RankSum<double>&);

}  // namespace trainer
