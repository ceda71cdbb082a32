#include "corpus.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "random.hpp"

namespace trainer {

rondo::Result<Corpus> Corpus::create(Text text, int context) {
  Corpus corpus(std::move(text), context);
  const uint64_t size = corpus.text_.bytes.size();
  constexpr uint64_t period = block_bytes * held_out_every, run = period - block_bytes;
  for (uint64_t first = 0; first < size; first += period) {
    corpus.add_run(first, std::min<uint64_t>(first + run, size));
    corpus.add_held_out(first + run, std::min<uint64_t>(first + period, size));
  }
  if (corpus.held_out_.empty() || corpus.training_windows_ == 0)
    return rondo::Error{
        rondo::ErrorCode::invalid_argument,
        fmt::format("the text has {} bytes; training with a context of {} needs at least {}, so that a "
                    "tenth can be held out",
                    size, context, std::max<uint64_t>(period, uint64_t(context) + 1))};
  return corpus;
}

void Corpus::add_run(uint64_t first, uint64_t end) {
  const uint64_t window = uint64_t(context_) + 1;
  if (end < first + window) return;
  runs_.push_back({first, training_windows_});
  training_windows_ += end - first - window + 1;
}

void Corpus::add_held_out(uint64_t first, uint64_t end) {
  for (; first + 1 < end; first += uint64_t(context_))
    held_out_.push_back({first, std::min<uint64_t>(uint64_t(context_), end - first - 1)});
}

uint64_t Corpus::window(uint64_t number) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), number, [](uint64_t value, const Run& run) {
    return value < run.first_window;
  });
  const Run& run = *(after - 1);
  return run.first_byte + number - run.first_window;
}

void Corpus::append(Batch& batch, uint64_t first, uint64_t targets) const {
  const auto byte = [&](uint64_t at) { return int32_t(uint8_t(text_.bytes[at])); };
  for (uint64_t i = 0; i < uint64_t(context_); i++) {
    const bool real = i < targets;  // a short window is filled up with places that count for nothing
    batch.tokens.push_back(real ? byte(first + i) : 0);
    batch.targets.push_back(real ? byte(first + i + 1) : no_target);
  }
  batch.sequences++;
}

Batch Corpus::training_batch(uint64_t seed, uint64_t step, const rondo::Extent& part) const {
  Batch batch;
  for (uint64_t sequence = part.first; sequence < part.first + part.count; sequence++)
    append(batch, window(random_below({seed, step, sequence}, training_windows_)), uint64_t(context_));
  return batch;
}

Batch Corpus::held_out_batch(const rondo::Extent& part) const {
  Batch batch;
  for (uint64_t i = part.first; i < part.first + part.count; i++)
    append(batch, held_out_[i].first, held_out_[i].count);
  return batch;
}

}  // namespace trainer
