// The form in which the verifier and the cost model walk a schedule: every rank's actions, one chunk each,
// with what each waits for, and the links that join them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedule/fuse.hpp"

namespace rondo::schedule {

/// What is to be proven: that these steps do `operation` among these ranks.
struct Claim {
  Operation operation;
  Shape shape;
  uint32_t chunks;
  std::vector<std::vector<Step>> steps;  // [rank], in listed order
};
/// Of a send_recv: every rank sends to the rank `root` places after it.
Claim claim_of(const Schedule& schedule, const Shape& shape);
/// The shape as `rank` is to see it.
Shape shape_of(Operation operation, const Shape& shape, Rank rank) noexcept;

/// A counter-example: where, and in one sentence what is wrong. `step` counts from 0 in the rank's list.
struct Fault {
  Rank rank;
  uint32_t step;
  std::string sentence;
};
/// "rank 2 step 5 (send chunk 1 to rank 3) " followed by `what`.
Fault fault(const Claim& claim, Rank rank, uint32_t step, const std::string& what);

enum class Form : uint8_t {
  unfused,    // one action per step, but a fan is one
  stored,     // fused, but what is kept in output is sent from there later, as an action of its own
  fused,      // fused, and every joined action needs its message and its slot at the same time
  published,  // fused, and what is published has links of its own, with blocks that every other rank reads
};
/// In place: all_reduce's output is its input, reduce_scatter's output is its shard of the input,
/// all_gather's input is its shard of the output; the root's output of a reduce is its input, its shard of a
/// gather or a scatter lies in the vector. A broadcast is always in place, all_to_all and send_recv never; a
/// barrier has no memory.
enum class Placement : uint8_t { out_of_place, in_place };

/// A step touches memory that this names: equal numbers are the same memory of one rank.
uint32_t location(const Claim& claim, Placement placement, Rank rank, Buffer buffer, uint32_t chunk) noexcept;
inline uint32_t locations(const Claim& claim) noexcept { return 3 * claim.chunks; }

enum class Why : uint8_t {
  data,      // `on` writes what the task reads
  buffer,    // `on` reads, sends or writes what the task overwrites
  recycled,  // the same for scratch that the window before used
};
struct Wait {
  uint32_t task, on;  // both of one rank
  Why why;
  bool released;  // not only done: the receiver must have consumed what `on` sent
};

struct Task {
  Action action;                                     // of one chunk
  uint32_t step;                                     // where the action begins in the rank's list
  uint32_t first_wait = 0, last_wait = 0;            // into RankProgram::waits
  uint32_t first_rx = 0, first_tx = 0, last_tx = 0;  // into RankProgram::ports

  uint32_t chunk() const noexcept { return action.in.chunk; }
};

// Where a task uses a link.
struct Port {
  uint32_t link;
  uint32_t task =
      nobody;  // at the link's other end, which sends what this receives or receives what it sends
};

struct Link {
  Rank from, to;
  std::vector<uint32_t> sends, receives;  // tasks of either end in the order of the link
};

struct RankProgram {
  std::vector<Task> tasks;
  std::vector<Wait> waits;
  std::vector<Port> ports;

  std::span<const Wait> waits_of(const Task& task) const noexcept {
    return std::span(waits).subspan(task.first_wait, task.last_wait - task.first_wait);
  }
  std::span<const Port> rx_of(const Task& task) const noexcept {
    return std::span(ports).subspan(task.first_rx, task.first_tx - task.first_rx);
  }
  std::span<const Port> tx_of(const Task& task) const noexcept {
    return std::span(ports).subspan(task.first_tx, task.last_tx - task.first_tx);
  }
};

struct Program {
  Program(const Claim& claim, Form form, Placement placement);
  Program(Claim&&, Form, Placement) = delete;  // the claim must outlive the program

  const Claim& claim;
  Form form;
  Placement placement;
  std::vector<RankProgram> ranks;
  std::vector<Link> links;
};

/// Steps that no rank could carry out: a buffer, chunk or peer that does not exist; a send without its
/// receive. Everything else here expects claims that have passed this.
std::optional<Fault> malformed(const Claim& claim);

enum class Touch : uint8_t { read, write, sent };
/// The memory an action touches, as visit(Touch, Buffer, chunk): what it reads, then what it writes, then
/// what it sends from memory. The accumulator of a recv_reduce_send is not touched: the partial goes from
/// link to link.
template <class Visit>
void touches(const Action& action, const Visit& visit) {
  const Step& in = action.in;
  switch (action.kind) {
    case ActionKind::send:
    case ActionKind::publish:
      return visit(Touch::sent, in.source, in.chunk);
    case ActionKind::recv:
      return visit(Touch::write, in.target, in.chunk);
    case ActionKind::recv_reduce:
    case ActionKind::reduce_fan:
      visit(Touch::read, in.source, in.chunk);
      return visit(Touch::write, in.target, in.chunk);
    case ActionKind::copy:
      visit(Touch::read, in.source, in.other);
      return visit(Touch::write, in.target, in.chunk);
    case ActionKind::reduce:
      visit(Touch::read, in.source, in.other);
      visit(Touch::read, in.target, in.chunk);
      return visit(Touch::write, in.target, in.chunk);
    case ActionKind::recv_reduce_send:
      return visit(Touch::read, in.source, in.chunk);
    case ActionKind::recv_reduce_copy_send:
      visit(Touch::read, in.source, in.chunk);
      visit(Touch::write, in.target, in.chunk);
      return visit(Touch::sent, action.out.source, in.chunk);
    case ActionKind::recv_copy_send:
      visit(Touch::write, in.target, in.chunk);
      return visit(Touch::sent, action.out.source, in.chunk);
  }
}

}  // namespace rondo::schedule
