// The checks that need no execution: every step names things that exist, every send meets its receive.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/program.hpp"

namespace rondo::schedule {
namespace {

bool has(const Claim& claim, Rank rank, Buffer buffer, uint32_t chunk) {
  switch (claim.operation) {
    case Operation::all_reduce:
      return true;
    case Operation::reduce_scatter:
      return buffer != Buffer::output || chunk == rank;
    case Operation::all_gather:
      return buffer != Buffer::input || chunk == rank;
    case Operation::broadcast:
      return buffer != Buffer::input;
    case Operation::barrier:
      return buffer == Buffer::accumulator || chunk == 0;
    case Operation::reduce:
      return buffer != Buffer::output || rank == claim.shape.root;
    case Operation::gather:
      if (buffer == Buffer::input) return chunk == rank;
      return buffer == Buffer::accumulator || rank == claim.shape.root;
    case Operation::scatter:
      if (buffer == Buffer::output) return chunk == rank;
      return buffer == Buffer::accumulator || rank == claim.shape.root;
    case Operation::all_to_all:
      if (buffer == Buffer::input) return chunk / claim.shape.world == rank;
      return buffer == Buffer::accumulator || chunk % claim.shape.world == rank;
    case Operation::send_recv:
      if (buffer == Buffer::input) return chunk == rank;
      return buffer == Buffer::output && chunk == shape_of(claim.operation, claim.shape, rank).from;
  }
  return false;
}

// What is wrong with a buffer that a step uses, or empty.
std::string misplaced(const Claim& claim, Rank rank, Buffer buffer, uint32_t chunk, uint32_t chunks) {
  if (buffer == Buffer::none) return "names no buffer where it needs one";
  if (uint64_t(chunk) + chunks > claim.chunks)
    return fmt::format("uses chunk {} of {}", chunk + chunks - 1, claim.chunks);
  for (uint32_t c = chunk; c < chunk + chunks; c++)
    if (!has(claim, rank, buffer, c))
      return fmt::format("uses {} chunk {}, which it does not have", name_of(buffer), c);
  return {};
}

std::string malformed(const Claim& claim, Rank rank, const Step& step) {
  const bool local = !sends(step) && !receives(step);
  const bool reads = step.kind != StepKind::recv, writes = !sends(step);
  if (step.flags & flag::fan && step.kind != StepKind::recv_reduce) return "has fan, but is no recv_reduce";
  if (step.flags & flag::published && local) return "has published, but has no peer";
  if (step.chunks == 0) return "covers no chunk";
  if (!local && step.other >= claim.shape.world)
    return fmt::format("has a peer outside the world of {}", claim.shape.world);
  if (!local && step.other == rank) return "has itself as peer";
  if (claim.operation == Operation::barrier && (step.flags & (flag::wide | flag::finish)))
    return "has flags, but tokens have no elements";
  if (step.flags & flag::finish && sends(step)) return "has finish, but changes no data";
  if (step.flags & flag::finish && step.kind == StepKind::recv) return "has finish, but reduces nothing";
  if (reads) {
    auto wrong = misplaced(claim, rank, step.source, local ? step.other : step.chunk, step.chunks);
    if (!wrong.empty()) return wrong;
  }
  if (writes && step.target == Buffer::input) return "writes to input, which only the caller may";
  return writes ? misplaced(claim, rank, step.target, step.chunk, step.chunks) : std::string();
}

// A fan and a publication concern every other rank, once.
std::optional<Fault> partial_run(const Program& program) {
  const uint32_t world = program.claim.shape.world;
  for (Rank rank = 0; rank < world; rank++) {
    for (const Task& task : program.ranks[rank].tasks) {
      if (task.action.kind != ActionKind::reduce_fan && task.action.kind != ActionKind::publish) continue;
      std::vector<bool> peers(world);
      for (uint32_t i = 0; i < task.action.run; i++)
        peers[program.claim.steps[rank][task.step + i].other] = true;
      const auto distinct = uint32_t(std::ranges::count(peers, true));
      if (distinct != task.action.run || distinct != world - 1)
        return fault(program.claim, rank, task.step,
                     fmt::format("begins a run over {} ranks, not over all {} others", distinct, world - 1));
    }
  }
  return std::nullopt;
}

// The step with which a task meets `peer`: one of a run, or the half of a fused action.
uint32_t step_with(const Claim& claim, Rank rank, const Task& task, Rank peer) {
  for (uint32_t s = task.step; s < task.step + task.action.steps(); s++)
    if (claim.steps[rank][s].other == peer) return s;
  return task.step;
}

// The k-th send of a link must be what the k-th receive expects.
std::optional<Fault> unmatched(const Program& program, const Link& link) {
  const Claim& claim = program.claim;
  const auto &from = program.ranks[link.from].tasks, &to = program.ranks[link.to].tasks;
  const size_t sends = link.sends.size(), receives = link.receives.size();
  for (size_t k = 0; k < std::min(sends, receives); k++) {
    const Task &send = from[link.sends[k]], &receive = to[link.receives[k]];
    const Step &out = send.action.sending(), &in = receive.action.in;
    const uint32_t sending = step_with(claim, link.from, send, link.to);
    const uint32_t receiving = step_with(claim, link.to, receive, link.from);
    const auto meets = fmt::format("rank {} step {}", link.from, sending);
    // Tokens have no elements: any chunk fits any other.
    if (in.chunk != out.chunk && claim.operation != Operation::barrier)
      return fault(claim, link.to, receiving,
                   fmt::format("meets {}, which sends chunk {}", meets, out.chunk));
    if ((in.flags ^ out.flags) & flag::published)
      return fault(claim, link.to, receiving,
                   fmt::format("meets {}, and only one of them is published", meets));
    if (in.round != out.round)
      return fault(claim, link.to, receiving,
                   fmt::format("is of round {} but meets {} of round {}", in.round, meets, out.round));
  }
  if (sends > receives)
    return fault(claim, link.from, step_with(claim, link.from, from[link.sends[receives]], link.to),
                 "has no receive at the other end");
  if (receives > sends)
    return fault(claim, link.to, step_with(claim, link.to, to[link.receives[sends]], link.from),
                 "has no send at the other end");
  // Of messages without elements only a link's first is ever sent, so only that orders anything.
  if (claim.operation == Operation::barrier && sends > 1)
    return fault(claim, link.from, from[link.sends[1]].step,
                 "is a second token on one link, where only one is sent");
  return std::nullopt;
}

}  // namespace

std::optional<Fault> malformed(const Claim& claim) {
  for (Rank rank = 0; rank < claim.shape.world; rank++)
    for (uint32_t s = 0; s < claim.steps[rank].size(); s++)
      if (auto wrong = malformed(claim, rank, claim.steps[rank][s]); !wrong.empty())
        return fault(claim, rank, s, wrong);
  for (Form form : {Form::unfused, Form::published}) {
    const Program program(claim, form, Placement::out_of_place);
    if (auto found = partial_run(program)) return found;
    for (const Link& link : program.links)
      if (auto found = unmatched(program, link)) return found;
  }
  return std::nullopt;
}

}  // namespace rondo::schedule
