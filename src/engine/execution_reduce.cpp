// How an execution reduces: contributions from all ranks at once (a fan), or two operands.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "engine/execution.hpp"

namespace rondo::engine {

using schedule::Buffer;
namespace flag = schedule::flag;

// A fan is tried once per pass, from the first of its links, when it is the turn on all of them.
bool Execution::fan_stands(const Op& op, uint32_t index, uint64_t window) {
  bool first = true;
  for (Rank peer = 0; peer < world_; peer++) {
    const uint32_t link = program_->fans[op.fan + peer];
    if (link == none) continue;
    if (std::exchange(first, false) && link != index) return false;
    if (!stands_at(link, uint32_t(&op - program_->ops.data()), window) || !take_header(link)) return false;
  }
  return true;
}

// From every other rank's memory at once, as far as all of them have come; returns the bytes of one of them.
size_t Execution::take_fan(const Op& op, OpRun& run, uint64_t until) {
  const uint32_t* fan = &program_->fans[op.fan];
  size_t bytes = until * run.in_width - run.in_bytes;
  for (Rank peer = 0; peer < world_ && bytes > 0; peer++) {
    if (fan[peer] == none) continue;
    const View view = links_[fan[peer]].peer->rx->peek(bytes, run.in_width);
    sources_[peer] = view.data;
    bytes = view.bytes;
  }
  if (bytes == 0) return 0;
  sources_[rank_] = run.source + run.in_bytes;
  if (weighted())
    finish_weighted(fan, run.target + run.in_bytes, bytes / run.in_width);
  else
    reducer_->finish_tree(run.target + run.in_bytes, sources_.data(), world_, bytes / run.in_width);
  for (Rank peer = 0; peer < world_; peer++)
    if (fan[peer] != none) links_[fan[peer]].peer->rx->release(bytes);
  return bytes;
}

namespace {

// The sum of the weights of an average. Weights so large or small that they, or their sum, might leave the range of an f32
// are multiplied by one power of two first, which changes nothing else.
double sum_of(std::span<double> weights) {
  constexpr int usual = 64;
  const int exponent = std::ilogb(*std::ranges::max_element(weights));
  if (std::abs(exponent) > usual)
    for (double& weight : weights) weight = std::scalbn(weight, -exponent);
  return std::accumulate(weights.begin(), weights.end(), 0.0);
}

}  // namespace

// The contributions in sources_, each times its rank's weight. Ranks of weight 0 take no part in an average.
void Execution::finish_weighted(const uint32_t* fan, std::byte* target, uint64_t elements) {
  const bool average = call_.reduction == Reduction::weighted_avg;
  uint32_t n = 0;
  for (Rank peer = 0; peer < world_; peer++) {
    const double weight =
        fan == nullptr || fan[peer] == none ? call_.weight : links_[fan[peer]].header.weight;
    if (average && weight == 0) continue;
    sources_[n] = sources_[peer];
    weights_[n++] = weight;
  }
  if (n == 0)
    std::memset(target, 0, elements * reducer_->element_bytes);
  else
    reducer_->finish_weighted(target, sources_.data(), weights_.data(), n,
                              average ? sum_of(std::span(weights_).first(n)) : 1, elements);
}

// The only contribution there is.
void Execution::finish_alone(std::byte* target, const std::byte* source, uint64_t elements) {
  if (!weighted()) return reducer_->finish(target, source, elements, world_);
  sources_[rank_] = source;
  finish_weighted(nullptr, target, elements);
}

// Both operands may be contributions or partials. Every reduction commutes, to the bit.
void Execution::combine(const Op& op, const OpRun& run, std::byte* target, const std::byte* incoming,
                        uint64_t elements) const {
  const std::byte* own = run.source + run.elements() * run.source_width;
  const std::byte *left = incoming, *right = own;
  const bool incoming_is_wide = op.in_flags & flag::wide, own_is_wide = op.source == Buffer::accumulator;
  if (own_is_wide && !incoming_is_wide) std::swap(left, right);
  const bool both = own_is_wide && incoming_is_wide, one = own_is_wide || incoming_is_wide;
  if (op.in_flags & flag::finish) {
    const auto finish = both  ? reducer_->finish_partials
                        : one ? reducer_->finish_partial
                              : reducer_->finish_narrow;
    finish(target, left, right, elements, world_);
  } else {
    (both ? reducer_->partials : one ? reducer_->partial : reducer_->narrow)(target, left, right, elements);
  }
}

}  // namespace rondo::engine
