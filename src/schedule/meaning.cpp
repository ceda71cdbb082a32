#include "schedule/meaning.hpp"

#include <fmt/format.h>

#include <bit>
#include <deque>

#include "schedule/machine.hpp"

namespace rondo::schedule {
namespace {

class Interpreter {
 public:
  explicit Interpreter(const Program& program)
      : program_(program),
        claim_(program.claim),
        memory_(claim_.shape.world),
        wires_(program.links.size()),
        meaning_{Values(claim_.shape.world), {}, {}} {
    for (Rank rank = 0; rank < claim_.shape.world; rank++) {
      memory_[rank].resize(locations(claim_));
      contribute(rank);
    }
  }

  Meaning run() {
    const Setting once{.slots = unbounded, .window = 1, .segments = std::vector<uint32_t>(claim_.chunks, 1)};
    auto stuck = schedule::run(program_, once, [&](Rank rank, uint32_t task) {
      if (!meaning_.wrong) carry_out(rank, program_.ranks[rank].tasks[task]);
    });
    if (!meaning_.wrong) meaning_.wrong = std::move(stuck);
    if (!meaning_.wrong) inspect();
    return std::move(meaning_);
  }

 private:
  struct Cell {
    Value value = undefined;
    uint32_t writer = nobody;  // step
  };

  bool is(Operation operation) const { return claim_.operation == operation; }
  bool reduces() const { return schedule::reduces(claim_.operation); }
  const Values::Node& at(Value value) const { return meaning_.values.at(value); }

  Cell& cell(Rank rank, Buffer buffer, uint32_t chunk) {
    return memory_[rank][location(claim_, program_.placement, rank, buffer, chunk)];
  }
  void wrong(Rank rank, uint32_t step, const std::string& what) {
    if (!meaning_.wrong) meaning_.wrong = fault(claim_, rank, step, what);
  }

  // What lies in the users' buffers at the start.
  void contribute(Rank rank) {
    const auto place = [&](Buffer buffer, uint32_t chunk) {
      cell(rank, buffer, chunk).value = meaning_.values.contribution(rank, chunk);
    };
    switch (claim_.operation) {
      case Operation::all_reduce:
      case Operation::reduce_scatter:
      case Operation::reduce:
        for (uint32_t chunk = 0; chunk < claim_.chunks; chunk++) place(Buffer::input, chunk);
        return;
      case Operation::all_gather:
      case Operation::gather:
      case Operation::send_recv:
        return place(Buffer::input, rank);
      case Operation::scatter:
        for (uint32_t chunk = 0; rank == claim_.shape.root && chunk < claim_.chunks; chunk++)
          place(Buffer::input, chunk);
        return;
      case Operation::all_to_all:
        for (Rank to = 0; to < claim_.shape.world; to++) place(Buffer::input, rank * claim_.shape.world + to);
        return;
      case Operation::broadcast:
        for (uint32_t chunk = 0; rank == claim_.shape.root && chunk < claim_.chunks; chunk++)
          place(Buffer::output, chunk);
        return;
      case Operation::barrier:
        return place(Buffer::input, 0);
    }
  }

  void carry_out(Rank rank, const Task& task) {
    const Action& action = task.action;
    const Step& in = action.in;
    if (sends(in)) return send(rank, task, in, load(rank, task.step, in.source, in.chunk));
    if (action.kind == ActionKind::reduce_fan) return store(rank, task.step, in, reduce_fan(rank, task));
    Value value = undefined;
    if (action.receives()) {
      value = take(program_.ranks[rank].rx_of(task).front());
    } else {
      value = load(rank, task.step, in.source, in.other);
    }
    check_width(rank, task.step, in, value);
    if (in.kind == StepKind::recv_reduce)
      value = combine(rank, task.step, value, load(rank, task.step, in.source, in.chunk));
    if (in.kind == StepKind::reduce)
      value = combine(rank, task.step, value, load(rank, task.step, in.target, in.chunk));
    if (in.flags & flag::finish) value = finish(rank, task.step, value);
    if (action.kind != ActionKind::recv_reduce_send) store(rank, task.step, in, value);
    if (!action.fused()) return;
    if (action.kind != ActionKind::recv_reduce_send)
      value = load(rank, task.step + 1, action.out.source, in.chunk);
    send(rank, task, action.out, value);
  }

  Value take(const Port& port) {
    const Value value = wires_[port.link].front();
    wires_[port.link].pop_front();
    return value;
  }

  // Every rank's contribution in the order of the canonical tree.
  Value reduce_fan(Rank rank, const Task& task) {
    const Step& in = task.action.in;
    std::vector<Value> sources(claim_.shape.world, undefined);
    for (const Port& port : program_.ranks[rank].rx_of(task)) {
      Value& source = sources[program_.links[port.link].from];
      source = take(port);
      check_width(rank, task.step, in, source);
    }
    sources[rank] = load(rank, task.step, in.source, in.chunk);
    const Value value = canonical(rank, task.step, sources);
    return in.flags & flag::finish ? finish(rank, task.step, value) : value;
  }

  Value canonical(Rank rank, uint32_t step, std::span<const Value> sources) {
    if (sources.size() == 1) return sources[0];
    const size_t left = std::bit_floor(sources.size() - 1);
    const Value first = canonical(rank, step, sources.first(left));
    return combine(rank, step, first, canonical(rank, step, sources.subspan(left)));
  }

  Value load(Rank rank, uint32_t step, Buffer buffer, uint32_t chunk) {
    const Value value = cell(rank, buffer, chunk).value;
    if (value == undefined)
      wrong(rank, step, fmt::format("reads {} chunk {} before it is written", name_of(buffer), chunk));
    return value;
  }

  void send(Rank rank, const Task& task, const Step& step, Value value) {
    check_width(rank, task.step + (task.action.fused() ? 1 : 0), step, value);
    for (const Port& port : program_.ranks[rank].tx_of(task)) wires_[port.link].push_back(value);
  }

  void check_width(Rank rank, uint32_t step, const Step& as, Value value) {
    if (value == undefined || is(Operation::barrier)) return;
    const bool wide = as.flags & flag::wide;
    switch (at(value).state) {
      case State::contribution:
        if (wide) wrong(rank, step, "is wide, but a contribution travels narrow");
        return;
      case State::partial:
        if (!wide) wrong(rank, step, "is not wide, but a partial travels wide");
        return;
      case State::result:
        if (wide) wrong(rank, step, "is wide, but a result travels narrow");
        return;
    }
  }

  Value combine(Rank rank, uint32_t step, Value left, Value right) {
    if (left == undefined || right == undefined) return undefined;
    const auto &a = at(left), &b = at(right);
    if (is(Operation::barrier)) return meaning_.values.combine(left, right);
    if (!reduces())
      wrong(rank, step, fmt::format("reduces, but {} moves data unchanged", name_of(claim_.operation)));
    else if (a.state == State::result || b.state == State::result)
      wrong(rank, step, "reduces a finished result");
    else if (a.chunk != b.chunk)
      wrong(rank, step, fmt::format("adds data of chunk {} to data of chunk {}", a.chunk, b.chunk));
    else if (const auto twice = meaning_.values.common(left, right))
      wrong(rank, step, fmt::format("adds the contribution of rank {} a second time", *twice));
    return meaning_.values.combine(left, right);
  }

  Value finish(Rank rank, uint32_t step, Value value) {
    if (value == undefined) return undefined;
    const auto& node = at(value);
    if (!reduces())
      wrong(rank, step, fmt::format("has finish, but {} moves data unchanged", name_of(claim_.operation)));
    else if (node.state == State::result)
      wrong(rank, step, "finishes a result that is finished already");
    else if (const auto missing = meaning_.values.missing(value))
      wrong(rank, step, fmt::format("finishes a partial that lacks rank {}", *missing));
    return meaning_.values.finish(value);
  }

  void store(Rank rank, uint32_t step, const Step& as, Value value) {
    if (as.target == Buffer::output && value != undefined && reduces() && at(value).state == State::partial) {
      if (const auto missing = meaning_.values.missing(value))
        wrong(rank, step, fmt::format("stores a partial in output that lacks rank {}", *missing));
      else
        wrong(rank, step, "stores a complete sum in output without finish");
    }
    cell(rank, as.target, as.chunk) = {value, step};
  }

  // Whether every rank ends with what the operation promises.
  void inspect() {
    meaning_.chunks.resize(reduces() ? claim_.chunks : 0);
    for (Rank rank = 0; rank < claim_.shape.world; rank++)
      for (uint32_t chunk = 0; chunk < claim_.chunks; chunk++)
        if (is_promised(rank, chunk)) inspect(rank, chunk);
  }

  // Whether the rank has this chunk in output in the end.
  bool is_promised(Rank rank, uint32_t chunk) const {
    switch (claim_.operation) {
      case Operation::all_reduce:
      case Operation::all_gather:
      case Operation::broadcast:
        return true;
      case Operation::reduce_scatter:
      case Operation::scatter:
        return chunk == rank;
      case Operation::barrier:
        return chunk == 0;
      case Operation::reduce:
      case Operation::gather:
        return rank == claim_.shape.root;
      case Operation::all_to_all:
        return chunk % claim_.shape.world == rank;
      case Operation::send_recv:
        return chunk == shape_of(claim_.operation, claim_.shape, rank).from;
    }
    return false;
  }

  // Whose data a chunk holds where nothing is reduced.
  Rank origin(uint32_t chunk) const {
    if (is_rooted(claim_.operation) && !is(Operation::gather)) return claim_.shape.root;
    return is(Operation::all_to_all) ? chunk / claim_.shape.world : chunk;
  }

  void inspect(Rank rank, uint32_t chunk) {
    const Cell& end = cell(rank, Buffer::output, chunk);
    const uint32_t step = std::min(end.writer, uint32_t(claim_.steps[rank].size()));
    const auto lies = [&](const std::string& what) {
      wrong(rank, step, fmt::format("leaves output chunk {} {}", chunk, what));
    };
    if (end.value == undefined) return lies("unwritten");
    const auto& node = at(end.value);
    if (is(Operation::barrier)) {
      if (const auto missing = meaning_.values.missing(end.value))
        lies(fmt::format("without the arrival of rank {}", *missing));
      return;
    }
    if (!reduces()) {
      if (end.value == meaning_.values.contribution(origin(chunk), chunk)) return;
      return lies(node.chunk != chunk ? fmt::format("with data of chunk {}", node.chunk)
                                      : fmt::format("with rank {}'s data", node.lowest));
    }
    if (const auto missing = meaning_.values.missing(end.value))
      return lies(fmt::format("without the contribution of rank {}", *missing));
    if (node.chunk != chunk) return lies(fmt::format("with data of chunk {}", node.chunk));
    if (node.state != State::result) return lies("unfinished");
    if (meaning_.chunks[chunk] == undefined) meaning_.chunks[chunk] = end.value;
    if (meaning_.chunks[chunk] != end.value) return lies("summed in another order than on another rank");
  }

  const Program& program_;
  const Claim& claim_;
  std::vector<std::vector<Cell>> memory_;
  std::vector<std::deque<Value>> wires_;
  Meaning meaning_;
};

}  // namespace

Meaning interpret(const Program& program) { return Interpreter(program).run(); }

}  // namespace rondo::schedule
