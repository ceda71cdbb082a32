#include "schedule/profile.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "schedule/grouping.hpp"
#include "schedule/program.hpp"

namespace rondo::schedule {
namespace {

class Count {
 public:
  Count(const Schedule& schedule, const Shape& shape, double width, Publications publications)
      : shape_(shape), width_(width), publications_(publications), share_(1.0 / schedule.chunks(shape)) {}

  void add(const Schedule& schedule, Rank rank) {
    const auto steps = steps_of(schedule, rank, shape_of(schedule.operation, shape_, rank));
    work_ = {};
    outgoing_ = 0;
    links_.clear();
    for (const Step& step : steps) mark_round(rank, step);
    for (const Action& action : fuse(steps, publications_)) add(action);
    work_.messages += double(links_.size());
  }
  // Of the rank added last.
  const Work& work() const { return work_; }
  double outgoing() const { return outgoing_; }
  // Of all ranks so far: by number, whether anybody sends to another node.
  const std::vector<bool>& rounds() const { return rounds_; }

 private:
  bool is_outer(Rank rank, Rank peer) const {
    return !shape_.nodes.empty() && shape_.nodes[rank] != shape_.nodes[peer];
  }
  void mark_round(Rank rank, const Step& step) {
    if (!sends(step)) return;
    if (rounds_.size() <= step.round) rounds_.resize(step.round + 1u);
    if (is_outer(rank, step.other)) {
      rounds_[step.round] = true;
      outgoing_ += bytes(step);
    }
  }
  double bytes(const Step& step) const { return share_ * (step.flags & flag::wide ? width_ : 1); }

  void put(const Step& step) {
    const bool published = publications_ == Publications::yes && (step.flags & flag::published);
    work_.messages += 1;
    work_.bytes += bytes(step) / 2;
    links_.insert({step.other, published});
  }
  void store(Buffer target) {
    if (target == Buffer::accumulator) work_.stored += share_ * width_;
  }

  void add(const Action& action) {
    const Step& in = action.in;
    switch (action.kind) {
      case ActionKind::send:
      case ActionKind::publish:
        work_.cold += bytes(in);
        return put(in);
      case ActionKind::copy:
        work_.stored += share_;
        return;
      case ActionKind::reduce:
        work_.reduced += share_;
        return store(in.target);
      case ActionKind::recv:
        work_.bytes += bytes(in) / 2;
        return;
      case ActionKind::recv_reduce:
      case ActionKind::reduce_fan:
        work_.bytes += action.run * bytes(in) / 2;
        work_.reduced += action.run * share_;
        return store(in.target);
      case ActionKind::recv_reduce_send:
      case ActionKind::recv_reduce_copy_send:
        work_.reduced += share_;
        [[fallthrough]];
      case ActionKind::recv_copy_send:
        work_.bytes += bytes(in) / 2;
        return put(action.out);
    }
  }

  const Shape& shape_;
  double width_;
  Publications publications_;
  double share_;  // of a chunk
  Work work_;
  double outgoing_ = 0;
  std::set<std::pair<Rank, bool>> links_;
  std::vector<bool> rounds_;
};

template <class Combine>
Work combined(const Work& a, const Work& b, const Combine& combine) {
  return {combine(a.messages, b.messages), combine(a.bytes, b.bytes), combine(a.reduced, b.reduced),
          combine(a.cold, b.cold), combine(a.stored, b.stored)};
}

// How many ranks stand for all.
uint32_t looked_at(const Schedule& schedule, const Shape& shape) {
  if (shape.world <= 64) return shape.world;
  const uint64_t steps = 4 * uint64_t(schedule.chunks(shape));
  return uint32_t(std::clamp<uint64_t>((uint64_t(1) << 20) / steps, 8, 64));
}

}  // namespace

Profile profile_of(const Schedule& schedule, const Shape& shape, double width, Publications publications) {
  Count count(schedule, shape, width, publications);
  const auto nodes = nodes_of(shape);
  const auto seats = seats_of(nodes, shape.world);
  const uint32_t some = looked_at(schedule, shape);
  std::vector<double> outgoing(nodes.size());
  double most_outgoing = 0;  // of a rank
  Profile profile;
  for (uint32_t i = 0; i < some; i++) {
    const auto rank = Rank(some == 1 ? 0 : uint64_t(i) * (shape.world - 1) / (some - 1));
    count.add(schedule, rank);
    profile.busiest =
        combined(profile.busiest, count.work(), [](double a, double b) { return std::max(a, b); });
    profile.mean = combined(profile.mean, count.work(), [&](double a, double b) { return a + b / some; });
    outgoing[seats[rank].node] += count.outgoing();
    most_outgoing = std::max(most_outgoing, count.outgoing());
  }
  for (const bool outer : count.rounds()) (outer ? profile.outer_rounds : profile.inner_rounds)++;
  profile.outgoing =
      some == shape.world ? *std::ranges::max_element(outgoing) : most_outgoing * largest(nodes);
  return profile;
}

}  // namespace rondo::schedule
