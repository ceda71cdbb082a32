#include "engine/model.hpp"

#include <algorithm>

#include "schedule/grouping.hpp"

namespace rondo::engine {
namespace {

uint32_t ranks_of_largest_node(const Situation& situation) {
  return schedule::largest(schedule::nodes_of({.world = situation.world, .nodes = situation.nodes}));
}

}  // namespace

double predicted(const schedule::Profile& profile, uint64_t bytes, const Situation& situation,
                 const Costs& costs) noexcept {
  const double ranks = ranks_of_largest_node(situation), m = double(bytes);
  const double load = std::max(1.0, ranks / situation.cores);
  const bool shared = load > 1;
  const auto per_step = [&](const Costs::PerStep& cost) { return shared ? cost.shared : cost.own; };
  // The part of the vectors that is not in caches.
  const double far = m * ranks > costs.caches ? 1 - costs.caches / (m * ranks) : 0;
  const auto per_byte = [&](const Costs::PerByte& cost) { return cost.near + far * cost.far; };
  const auto work = [&](double schedule::Work::*what) {
    const double busiest = profile.busiest.*what;
    return shared ? load * profile.mean.*what + busiest : busiest;
  };
  using schedule::Work;
  const double inside =
      per_step(costs.alpha) * load * profile.inner_rounds + per_step(costs.message) * work(&Work::messages) +
      m * (costs.beta * work(&Work::bytes) + costs.gamma * work(&Work::reduced) +
           per_byte(costs.cold) * work(&Work::cold) + per_byte(costs.stored) * work(&Work::stored));
  return inside + costs.between_nodes_alpha * profile.outer_rounds +
         costs.between_nodes_beta * m * profile.outgoing;
}

}  // namespace rondo::engine
