#include "engine/selection.hpp"

#include <bit>

#include "kernels/reducer.hpp"
#include "schedule/catalogue.hpp"

namespace rondo::engine {

using schedule::Algorithm;
using schedule::Operation;

namespace {

// Sizes of the whole vector. One-shot does N times the work of direct in half the rounds.
constexpr uint64_t one_shot_most = 32 << 10;
// Of a network, in worlds that are powers of two: log N messages one after another instead of N. Measured
// with 4 and 8 ranks over loopback (docs/benchmarks.md).
constexpr uint64_t halving_most = 256 << 10;

Algorithm over_network(uint64_t bytes, uint32_t world) {
  return bytes <= halving_most && std::has_single_bit(world) ? Algorithm::halving_doubling : Algorithm::ring;
}

Algorithm all_reduce(uint64_t bytes, bool narrow, const Situation& situation) {
  if (bytes <= one_shot_most / situation.world) return Algorithm::one_shot;
  return narrow || situation.publishes ? Algorithm::direct : over_network(bytes, situation.world);
}

Algorithm quickest(const Call& call, const Situation& situation) {
  const auto& reducer = kernels::reducer(call.type, call.reduction);
  const uint64_t bytes = call.count * reducer.element_bytes;
  // Partials, which a ring passes on, would be wider than the data.
  const bool narrow = reducer.element_bytes < reducer.accumulator_bytes;
  switch (call.operation) {
    case Operation::all_reduce:
      return all_reduce(bytes, narrow, situation);
    case Operation::reduce_scatter:
      return narrow || situation.publishes ? Algorithm::direct : over_network(bytes, situation.world);
    case Operation::all_gather:
      return situation.publishes ? Algorithm::direct : over_network(bytes, situation.world);
    case Operation::broadcast:
      return situation.publishes ? Algorithm::direct : Algorithm::ring;
    case Operation::reduce:
      return bytes <= one_shot_most / situation.world ? Algorithm::one_shot : Algorithm::direct;
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
    case Operation::send_recv:
      return Algorithm::direct;
    case Operation::barrier:
      return situation.publishes ? Algorithm::direct : Algorithm::dissemination;
  }
  return Algorithm::ring;
}

}  // namespace

bool can_run(const Call& call, Algorithm algorithm) noexcept {
  const schedule::Schedule* schedule = schedule::find(call.operation, algorithm);
  if (schedule == nullptr) return false;
  if (!schedule::reduces(call.operation)) return true;
  return (!call.reproducible || schedule->canonical) &&
         (!is_weighted(call.reduction) || reduces_at_once(algorithm));
}

Algorithm select(const Call& call, const Situation& situation) noexcept {
  const Algorithm algorithm = quickest(call, situation);
  return can_run(call, algorithm) ? algorithm : Algorithm::direct;
}

}  // namespace rondo::engine
