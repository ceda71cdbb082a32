#include "engine/selection.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/reducer.hpp"
#include "schedule/catalogue.hpp"

namespace rondo::engine {

using schedule::Algorithm;
using schedule::Operation;

namespace {

// In one memory, what reduces at once is taken when the model hardly tells it from the quickest: it knows nothing of
// lent memory, which such algorithms use best.
constexpr double equally_quick = 1.03;

// Of a partial, in elements: 1, 2, 4 or 8.
uint32_t width_of(const Call& call) {
  if (!schedule::reduces(call.operation)) return 1;
  const auto& reducer = kernels::reducer(call.type, call.reduction);
  return std::max<uint32_t>(1, reducer.accumulator_bytes / reducer.element_bytes);
}

bool all_equal(std::span<const uint32_t> nodes) {
  return std::ranges::adjacent_find(nodes, std::not_equal_to()) == nodes.end();
}

std::vector<const schedule::Schedule*> able(const Call& call, bool one_node) {
  std::vector<const schedule::Schedule*> able;
  for (const schedule::Schedule& schedule : schedule::catalogue())
    if (schedule.operation == call.operation && can_run(call, schedule.algorithm) &&
        !(one_node && schedule.algorithm == Algorithm::hierarchical))
      able.push_back(&schedule);
  std::stable_partition(able.begin(), able.end(),
                        [](const auto* schedule) { return schedule::reduces_at_once(schedule->algorithm); });
  return able;
}

// Whether the order of the operands can be seen in the result.
bool order_matters(const Call& call) { return is_float(call.type) && !is_extremum(call.reduction); }

}  // namespace

bool can_run(const Call& call, Algorithm algorithm) noexcept {
  const schedule::Schedule* schedule = schedule::find(call.operation, algorithm);
  if (schedule == nullptr) return false;
  if (!schedule::reduces(call.operation)) return true;
  return (!call.reproducible || schedule->canonical || !order_matters(call)) &&
         (!is_weighted(call.reduction) || reduces_at_once(algorithm));
}

Selection::Selection(const Situation& situation, const Costs& costs)
    : world_(situation.world), publishes_(situation.publishes), cores_(situation.cores), costs_(costs) {
  if (!all_equal(situation.nodes)) nodes_.assign(situation.nodes.begin(), situation.nodes.end());
}

unsigned Selection::class_of(uint64_t bytes) noexcept {
  return std::min(classes - 1, bytes <= 1 ? 0u : unsigned(std::bit_width(bytes - 1)));
}

std::vector<Selection::Profiled> Selection::profiles(const Call& call) const {
  const auto publications = publishes_ ? schedule::Publications::yes : schedule::Publications::no;
  const auto schedules = able(call, nodes_.empty());
  std::vector<Profiled> profiles;
  for (const schedule::Schedule* schedule : schedules) {
    schedule::Profile profile;  // an only one need not be looked at
    if (schedules.size() > 1)
      profile = profile_of(*schedule, {.world = world_, .nodes = nodes_}, width_of(call), publications);
    profiles.push_back({schedule->algorithm, profile});
  }
  return profiles;
}

std::vector<Selection::Candidate> Selection::ranked(const std::vector<Profiled>& profiles,
                                                    unsigned size) const {
  const Situation situation{world_, publishes_, cores_, nodes_};
  std::vector<Candidate> all;
  for (const auto& [algorithm, profile] : profiles)
    all.push_back({algorithm, predicted(profile, uint64_t(1) << size, situation, costs_)});
  const double enough =
      (publishes_ ? equally_quick : 1) * std::ranges::min_element(all, {}, &Candidate::ns)->ns;
  const auto chosen = std::ranges::find_if(all, [&](const Candidate& one) { return one.ns <= enough; });
  std::rotate(all.begin(), chosen, chosen + 1);
  std::ranges::stable_sort(all.begin() + 1, all.end(), {}, &Candidate::ns);
  return all;
}

std::vector<Selection::Candidate> Selection::candidates(const Call& call) const {
  return ranked(profiles(call), class_of(call.count * size_of(call.type)));
}

Algorithm Selection::choose(const Call& call) {
  const size_t demand = !schedule::reduces(call.operation)         ? 0
                        : is_weighted(call.reduction)              ? 2
                        : call.reproducible && order_matters(call) ? 1
                                                                   : 0;
  const auto width = size_t(std::countr_zero(width_of(call)));
  auto& row = rows_[(size_t(call.operation) * widths + width) * demands + demand];
  if (!row) {
    row = std::make_unique<Row>();
    const auto all = profiles(call);
    for (unsigned size = 0; size < classes; size++) (*row)[size] = ranked(all, size).front().algorithm;
  }
  return (*row)[class_of(call.count * size_of(call.type))];
}

}  // namespace rondo::engine
