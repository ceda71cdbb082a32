#include "step_gradient.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace trainer {

template <class T>
StepGradient<T>::StepGradient(size_t parameters, std::vector<size_t> buckets)
    : total_(front + parameters), buckets_(std::move(buckets)) {
  assert(!buckets_.empty() && buckets_[0] == 0 && std::is_sorted(buckets_.begin(), buckets_.end()));
  for (size_t& first : buckets_) first += first == 0 ? 0 : front;
}

template <class T>
void StepGradient<T>::begin(uint32_t micro_batches, RankSum<T>& sum, bool stop) {
  sum_ = &sum;
  micro_batches_ = micro_batches;
  index_ = 0;
  stop_ = stop;
  waiting_ = buckets_.size();
}

template <class T>
std::span<T> StepGradient<T>::part(uint32_t number) {
  if (number == 0) return total_.span();
  if (more_.size() < number) more_.resize(number, std::vector<T>(total_.span().size()));
  return more_[number - 1];
}

// The subtrees complete so far are those of the binary digits of index_, so this micro-batch's place is after
// as many parts as it has ones.
template <class T>
std::span<T> StepGradient<T>::next() {
  const auto place = part(uint32_t(std::popcount(index_)));
  std::fill(place.begin(), place.end(), T(0));
  watermark_ = place.size();
  return place.subspan(front);
}

template <class T>
void StepGradient<T>::complete(size_t first) {
  complete_elements(front + first);
}

// Adds to the left what is now the right half of a subtree: as often as index_ ends with ones, for each completes
// a pair; after the last micro-batch all parts there are.
template <class T>
void StepGradient<T>::complete_elements(size_t first) {
  assert(first <= watermark_);
  const bool last = index_ + 1 == micro_batches_;
  const auto depth = uint32_t(std::popcount(index_));
  const uint32_t merges = last ? depth : uint32_t(std::countr_one(index_));
  for (uint32_t right = depth; right > depth - merges; right--) {
    T* into = part(right - 1).data();
    const T* from = part(right).data();
    for (size_t i = first; i < watermark_; i++) into[i] += from[i];
  }
  watermark_ = first;
  while (last && waiting_ > 0 && buckets_[waiting_ - 1] >= watermark_) {
    const size_t begin = buckets_[waiting_ - 1],
                 end = waiting_ < buckets_.size() ? buckets_[waiting_] : total_.span().size();
    waiting_--;
    sum_->start(total_.span().subspan(begin, end - begin));
  }
}

template <class T>
void StepGradient<T>::end(const LossSum& loss) {
  const auto extras = part(uint32_t(std::popcount(index_)));
  extras[loss_at] = T(loss.loss);
  extras[targets_at] = T(loss.targets);
  extras[stop_at] = index_ == 0 && stop_ ? T(1) : T(0);
  complete_elements(0);
  index_++;
}

template <class T>
rondo::Result<StepMean> StepGradient<T>::mean() {
  assert(index_ == micro_batches_);
  const auto before = std::chrono::steady_clock::now();
  if (auto done = sum_->wait(); !done) return done.error();
  const auto after = std::chrono::steady_clock::now();
  const auto extras = total_.span();
  const T scale = T(1) / extras[targets_at];
  for (T& each : values()) each *= scale;
  return StepMean{double(extras[loss_at] * scale), double(extras[targets_at]), extras[stop_at] > T(0),
                  after - before};
}

std::vector<size_t> even_buckets(size_t parameters, uint32_t count) {
  std::vector<size_t> first;
  for (uint32_t i = 0; i < count; i++) {
    const rondo::Extent bucket = rondo::shard(parameters, count, i);
    if (i == 0 || bucket.count > 0) first.push_back(bucket.first);
  }
  return first;
}

template class StepGradient<float>;
template class StepGradient<double>;

}  // namespace trainer
