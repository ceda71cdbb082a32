#include "step.hpp"

#include <algorithm>
#include <array>

namespace trainer {

template <class T>
rondo::Result<StepReport> mean_gradient(Model<T>& model, std::span<const T> parameters, const Corpus& corpus,
                                        const Share& share, uint64_t step, bool stop,
                                        const AllReduce<T>& all_reduce, GradientBuffer<T>& buffer) {
  std::fill(buffer.all().begin(), buffer.all().end(), T(0));
  LossSum sum;
  for (uint32_t i = 0; i < share.micro_batches; i++) {
    const Batch batch = corpus.training_batch(share.seed, step, share.sequences_of(i));
    const LossSum part = model.loss_and_gradient(parameters, batch, buffer.gradient());
    sum.loss += part.loss;
    sum.tokens += part.tokens;
  }
  buffer.loss() = T(sum.loss);
  buffer.tokens() = T(sum.tokens);
  buffer.stop() = T(stop);

  const auto before = std::chrono::steady_clock::now();
  if (auto done = all_reduce(buffer.all()); !done) return done.error();
  const auto after = std::chrono::steady_clock::now();

  const T scale = T(1) / buffer.tokens();
  for (T& each : buffer.gradient()) each *= scale;
  return StepReport{double(buffer.loss() * scale), buffer.stop() > T(0), after - before};
}

template <class T>
rondo::Result<double> held_out_loss(Model<T>& model, std::span<const T> parameters, const Corpus& corpus,
                                    const Share& share, const AllReduce<double>& all_reduce) {
  constexpr uint64_t at_once = 8;
  const rondo::Extent mine = rondo::shard(corpus.held_out_windows(), share.world, share.rank);
  std::array<double, 2> sums{};
  for (uint64_t done = 0; done < mine.count; done += at_once) {
    const rondo::Extent part{mine.first + done, std::min(at_once, mine.count - done)};
    const LossSum sum = model.loss(parameters, corpus.held_out_batch(part));
    sums[0] += sum.loss;
    sums[1] += double(sum.tokens);
  }
  if (auto done = all_reduce(sums); !done) return done.error();
  return sums[0] / sums[1];
}

template rondo::Result<StepReport> mean_gradient(Model<float>&, std::span<const float>, const Corpus&,
                                                 const Share&, uint64_t, bool, const AllReduce<float>&,
                                                 GradientBuffer<float>&);
template rondo::Result<StepReport> mean_gradient(Model<double>&, std::span<const double>, const Corpus&,
                                                 const Share&, uint64_t, bool, const AllReduce<double>&,
                                                 GradientBuffer<double>&);
template rondo::Result<double> held_out_loss(Model<float>&, std::span<const float>, const Corpus&,
                                             const Share&, const AllReduce<double>&);
template rondo::Result<double> held_out_loss(Model<double>&, std::span<const double>, const Corpus&,
                                             const Share&, const AllReduce<double>&);

}  // namespace trainer
