#include "engine/execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "schedule/layout.hpp"

namespace rondo::engine {

using schedule::ActionKind;
using schedule::Buffer;
namespace flag = schedule::flag;

namespace {

// True if that gave credit back, which whoever waits for credit must try before it sleeps.
bool flush(Tx& tx) {
  const uint64_t before = tx.completed();
  tx.poll();
  return tx.completed() != before;
}

Traffic traffic_of(const Program& program, schedule::Operation operation) {
  const auto receives = [](const LinkQueue& link) { return !link.sends; };
  const bool both = !schedule::is_rooted(operation) && std::ranges::any_of(program.links, receives);
  return both ? Traffic::both_ways : Traffic::one_way;
}

size_t copy_into(Tx& tx, View view) {
  const auto space = tx.acquire(std::min<size_t>(view.bytes, tx.caps().slot_bytes));
  if (space.empty()) return 0;
  std::memcpy(space.data(), view.data, space.size());
  tx.commit(space.size());
  return space.size();
}

}  // namespace

void Execution::start(const Program& program, const Call& call, std::span<const Header> headers,
                      uint64_t window, Links& links) {
  program_ = &program;
  call_ = call;
  window_ = window;
  reducer_ = &kernels::reducer(call.type, call.reduction);
  header_bytes_ = header_bytes_of(call);
  if (program.accumulates) accumulator_.resize(call.count * reducer_->accumulator_bytes);
  traffic_ = traffic_of(program, call.operation);
  ops_.clear();
  for (const Op& op : program.ops) place(op);
  uint64_t most = 1;
  for (const OpRun& run : ops_) most = std::max(most, run.count);
  windows_ = (most + window - 1) / window;
  links_.clear();
  for (const LinkQueue& queue : program.links) links_.push_back({.peer = &links.of(queue)});
  start_again(call, headers);
}

void Execution::start_again(const Call& call, std::span<const Header> headers) {
  renew(call_, call);
  mismatch_.reset();
  stale_.reset();
  std::array<std::byte*, 4> bases{};
  bases[size_t(Buffer::input)] = const_cast<std::byte*>(call.input);
  bases[size_t(Buffer::output)] = call.output;
  bases[size_t(Buffer::accumulator)] = accumulator_.data();
  for (size_t i = 0; i < ops_.size(); i++) {
    const Op& op = program_->ops[i];
    OpRun& run = ops_[i];
    run.source = bases[size_t(op.source)] + run.source_at;
    run.target = bases[size_t(op.target)] + run.target_at;
    run.in_bytes = run.out_bytes = run.windows = 0;
  }
  for (size_t i = 0; i < links_.size(); i++) links_[i].rewind(headers[headers.size() == 1 ? 0 : i]);
  local_.rewind({});
  local_.done = program_->local.empty();
}

void Execution::place(const Op& op) {
  const auto payload = [&](uint8_t flags) {
    return flags & flag::wide ? reducer_->accumulator_bytes : reducer_->element_bytes;
  };
  // Sums in the accumulator are wide; what is only moved through it is as wide as it travels.
  const bool sums = op.kind != ActionKind::send && op.kind != ActionKind::publish &&
                    op.kind != ActionKind::copy && op.kind != ActionKind::reduce_fan;
  const auto width = [&](Buffer buffer) {
    if (buffer != Buffer::accumulator) return reducer_->element_bytes;
    return sums ? reducer_->accumulator_bytes : payload(op.in_flags);
  };
  const bool local = op.in_link == none && op.out_link == none && op.fan == none;
  OpRun run{};
  run.source_width = width(op.source);
  run.target_width = width(op.target);
  run.in_width = local ? run.source_width : payload(op.in_flags);
  run.out_width = payload(op.out_flags);
  run.count = op.target == Buffer::none ? extent(op.source, op.source_chunk).count
                                        : extent(op.target, op.chunk).count;
  run.source_at = offset(op.source, op.source_chunk, run.source_width);
  run.target_at = offset(op.target, op.chunk, run.target_width);
  ops_.push_back(run);
}

Extent Execution::extent(Buffer buffer, uint32_t chunk) const noexcept {
  const schedule::Layout layout(call_.operation, call_.count, program_->chunks, {rank_, world_},
                                call_.parts.get());
  return layout.extent(buffer, chunk);
}

uint64_t Execution::offset(Buffer buffer, uint32_t chunk, uint32_t width) const noexcept {
  if (buffer == Buffer::none) return 0;
  // Chunks of the accumulator lie apart as if all were wide.
  if (buffer == Buffer::accumulator) width = reducer_->accumulator_bytes;
  return extent(buffer, chunk).first * width;
}

// Elements of a chunk of `count` up to the end of `window`.
uint64_t Execution::limit(uint64_t count, uint64_t window) const noexcept {
  return window + 1 >= windows_ ? count : std::min(count, (window + 1) * window_);
}

bool Execution::is_empty(const OpRun& run, uint64_t window) const noexcept {
  return window > 0 ? limit(run.count, window - 1) == limit(run.count, window) : run.count == 0;
}

// How many of the elements up to `limit` an op that reads what `producer` writes may use now.
uint64_t Execution::ready(uint32_t producer, uint64_t limit) const noexcept {
  return producer == none ? limit : std::min(limit, ops_[producer].elements());
}

bool Execution::has_passed(uint32_t producer, uint64_t window) const noexcept {
  return producer == none || ops_[producer].windows > window;
}

void Execution::next(LinkRun& link, const std::vector<uint32_t>& queue) noexcept {
  if (++link.next < queue.size()) return;
  link.next = 0;
  link.done = ++link.window == windows_;
}

bool Execution::stands_at(uint32_t link, uint32_t op, uint64_t window) const noexcept {
  const LinkRun& run = links_[link];
  return !run.done && run.window == window && program_->links[link].ops[run.next] == op;
}

bool Execution::move() {
  for (LinkRun& link : links_) link.awaited = false;
  bool moved = !local_.done && advance_local();
  moved |= move_sends();
  for (uint32_t i = 0; i < links_.size(); i++) {
    if (program_->links[i].sends || links_[i].done || !advance_rx(i)) continue;
    moved = true;
    // Peers should not have to wait for it until this rank has taken in all that it can.
    if (program_->links[i].feeds) move_sends();
  }
  return moved;
}

bool Execution::move_sends() {
  bool moved = false;
  for (uint32_t i = 0; i < links_.size(); i++) {
    if (!program_->links[i].sends) continue;
    if (!links_[i].done) moved |= advance_tx(i);
    moved |= flush(*links_[i].peer->tx);
  }
  return moved;
}

bool Execution::unblock() {
  bool moved = false;
  for (uint32_t i = 0; i < links_.size(); i++) {
    if (!links_[i].awaited) continue;
    moved |= advance_tx(i);
    links_[i].awaited = false;
    moved |= flush(*links_[i].peer->tx);
  }
  return moved;
}

bool Execution::done() const noexcept {
  if (!local_.done) return false;
  return std::ranges::all_of(links_, [&](const LinkRun& link) {
    const bool sends = program_->links[size_t(&link - links_.data())].sends;
    return link.done && (!sends || link.peer->tx->completed() >= link.peer->accepted);
  });
}

// ---- sending

size_t Execution::send(LinkRun& link, View view) {
  const size_t n = link.awaited ? copy_into(*link.peer->tx, view) : link.peer->tx->send(view, traffic_);
  link.peer->accepted += n;
  return n;
}

bool Execution::put_header(LinkRun& link) {
  if (link.header_bytes == header_bytes_) return true;
  const auto* bytes = reinterpret_cast<const std::byte*>(&link.header);
  const size_t n = send(link, {bytes + link.header_bytes, header_bytes_ - link.header_bytes});
  link.header_bytes += uint32_t(n);
  counters_.header_bytes_sent += n;
  return link.header_bytes == header_bytes_;
}

bool Execution::advance_tx(uint32_t index) {
  LinkRun& link = links_[index];
  const auto& queue = program_->links[index].ops;
  bool moved = false;
  while (!link.done) {
    const Op& op = program_->ops[queue[link.next]];
    OpRun& run = ops_[queue[link.next]];
    if (op.kind == ActionKind::recv_reduce_send) break;  // the receiving side produces into this link
    const bool follows = op.in_link != none;             // sends what it has itself taken in
    const uint64_t until = limit(run.count, link.window);
    const uint64_t available = follows ? std::min(until, run.elements()) : ready(op.producer, until);
    const size_t bytes = available * run.out_width - run.out_bytes;
    const bool passed = follows ? run.windows > link.window : has_passed(op.producer, link.window);
    if (bytes == 0 && !passed) break;
    if (!put_header(link)) break;
    const std::byte* memory = follows ? run.target : run.source;
    const size_t n = bytes > 0 ? send(link, {memory + run.out_bytes, bytes}) : 0;
    run.out_bytes += n;
    counters_.payload_bytes_sent += n;
    moved |= n > 0;
    if (run.out_bytes == until * run.out_width && passed) {
      next(link, queue);
      moved = true;
    } else if (n == 0 || !link.awaited) {
      break;
    }
  }
  return moved;
}

// ---- receiving

bool Execution::take_header(uint32_t index) {
  LinkRun& link = links_[index];
  if (link.header_bytes == header_bytes_) return true;
  if (link.header_bytes > 0) return take_weight(link);
  const Rank peer = program_->links[index].peer;
  const View view = link.peer->rx->peek(header_bytes, header_bytes);
  if (view.bytes == 0) return false;
  Header theirs{};
  std::memcpy(&theirs, view.data, header_bytes);
  if (const auto differs = difference(link.header, theirs)) {
    if (is_of_all(theirs) && is_of_all(link.header) && theirs.sequence < link.header.sequence)
      return stale_ = Stray{peer, theirs}, false;
    mismatch_ = Error{
        ErrorCode::mismatch,
        fmt::format("rank {} called something else than rank {}: {}. Every rank must make the same calls "
                    "in the same order with the same arguments",
                    peer, rank_, *differs),
        peer};
    return false;
  }
  link.peer->rx->release(header_bytes);
  link.header_bytes = header_bytes;
  return link.header_bytes == header_bytes_ || take_weight(link);
}

// It follows the header in weighted reductions.
bool Execution::take_weight(LinkRun& link) {
  const View view = link.peer->rx->peek(sizeof(double), sizeof(double));
  if (view.bytes == 0) return false;
  std::memcpy(&link.header.weight, view.data, sizeof(double));
  link.peer->rx->release(sizeof(double));
  link.header_bytes = uint32_t(header_bytes_);
  return true;
}

bool Execution::advance_rx(uint32_t index) {
  LinkRun& link = links_[index];
  const auto& queue = program_->links[index].ops;
  bool moved = false;
  while (!link.done && take_header(index)) {
    const uint32_t at = queue[link.next];
    const Op& op = program_->ops[at];
    OpRun& run = ops_[at];
    const bool through = op.kind == ActionKind::recv_reduce_send;
    if (through && !(stands_at(op.out_link, at, link.window) && put_header(links_[op.out_link]))) {
      links_[op.out_link].awaited = true;
      break;
    }
    if (op.fan != none && !fan_stands(op, index, link.window)) break;
    const uint64_t until = limit(run.count, link.window);
    size_t n = 0;
    if (!is_empty(run, link.window)) {
      const uint64_t usable = ready(op.producer, until);
      n = op.fan != none ? take_fan(op, run, usable)
          : through      ? take_through(op, run, *link.peer->rx, usable)
                         : take_in(op, run, *link.peer->rx, usable);
      run.in_bytes += n;
      moved |= n > 0;
    }
    if (run.in_bytes == until * run.in_width && has_passed(op.producer, link.window)) {
      run.windows++;
      leave(op, index);
      moved = true;
    } else if (n == 0) {
      break;
    }
  }
  return moved;
}

// Into the target's memory; returns the bytes taken from the link.
size_t Execution::take_in(const Op& op, OpRun& run, Rx& rx, uint64_t until) {
  const size_t wanted = until * run.in_width - run.in_bytes;
  if (wanted == 0) return 0;
  if (op.kind == ActionKind::recv || op.kind == ActionKind::recv_copy_send)
    return rx.receive({run.target + run.in_bytes, wanted});
  const View view = rx.peek(wanted, run.in_width);
  const uint64_t elements = view.bytes / run.in_width;
  if (elements == 0) return 0;
  combine(op, run, run.target + run.elements() * run.target_width, view.data, elements);
  rx.release(view.bytes);
  return view.bytes;
}

// From the incoming link's memory straight into the outgoing link's.
size_t Execution::take_through(const Op& op, OpRun& run, Rx& rx, uint64_t until) {
  LinkRun& out = links_[op.out_link];
  const size_t wanted = until * run.in_width - run.in_bytes;
  const View view = wanted > 0 ? rx.peek(wanted, run.in_width) : View{};
  if (view.bytes == 0) return 0;
  const auto space = out.peer->tx->acquire(view.bytes / run.in_width * run.out_width);
  const uint64_t elements = std::min(view.bytes / run.in_width, space.size() / run.out_width);
  if (elements == 0) return 0;
  combine(op, run, space.data(), view.data, elements);
  out.peer->tx->commit(elements * run.out_width);
  out.peer->accepted += elements * run.out_width;
  run.out_bytes += elements * run.out_width;
  counters_.payload_bytes_sent += elements * run.out_width;
  rx.release(elements * run.in_width);
  return elements * run.in_width;
}

// Done with a window of an op that receives: every link that it stands on moves on.
void Execution::leave(const Op& op, uint32_t link) noexcept {
  if (op.fan == none) next(links_[link], program_->links[link].ops);
  if (op.kind == ActionKind::recv_reduce_send) next(links_[op.out_link], program_->links[op.out_link].ops);
  for (Rank peer = 0; op.fan != none && peer < world_; peer++)
    if (const uint32_t at = program_->fans[op.fan + peer]; at != none)
      next(links_[at], program_->links[at].ops);
}

// ---- copies and reductions without a link

bool Execution::advance_local() {
  bool moved = false;
  while (!local_.done) {
    const uint32_t at = program_->local[local_.next];
    const Op& op = program_->ops[at];
    OpRun& run = ops_[at];
    if (!has_passed(op.producer, local_.window) || !has_passed(op.target_producer, local_.window)) break;
    const uint64_t from = run.elements(), n = limit(run.count, local_.window) - from;
    const std::byte* source = run.source + from * run.source_width;
    std::byte* target = run.target + from * run.target_width;
    if (op.kind == ActionKind::reduce && n > 0)
      reducer_->partials(target, source, target, n);
    else if (op.in_flags & flag::finish)
      finish_alone(target, source, n);
    else if (n > 0 && target != source)
      std::memcpy(target, source, n * run.source_width);
    run.in_bytes += n * run.in_width;
    run.windows++;
    next(local_, program_->local);
    moved = true;
  }
  return moved;
}

}  // namespace rondo::engine
