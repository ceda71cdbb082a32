#include "engine/engine.hpp"

#include <fmt/format.h>

#include "schedule/catalogue.hpp"

namespace rondo::engine {

Engine::Engine(const Place& place, Fabric& fabric, Waiter& waiter, const Failure& failure)
    : place_(place),
      selection_({place_.world, fabric.publication() != nullptr, place_.cores, place_.nodes}),
      fabric_(fabric),
      waiter_(waiter),
      failure_(failure),
      execution_(place.rank, place.world, counters_),
      sent_(place.world),
      received_(place.world),
      links_(place.world),
      strays_(place.rank, place.world, fabric) {}

Result<void> Engine::run(const Call& call, TimePoint deadline) {
  begin(call, deadline);
  for (Progress progress = advance(); progress != Progress::ended; progress = advance())
    if (progress == Progress::asleep) waiter_.sleep(deadline);
  if (error_) return *error_;
  return {};
}

namespace {

// Of shared memory. `bytes`: the vectors of all ranks. Sources that peers read where they are had better have
// left the writer's own cache by then, but not the one that all share. Measured: docs/benchmarks.md.
uint64_t shared_window(uint64_t bytes) { return bytes <= 64 << 20 ? 2 << 20 : 64 << 10; }

}  // namespace

void Engine::begin(const Call& call, TimePoint deadline) {
  counters_.operations = ++sequence_;
  Ordinals ordinals{.sequence = sequence_};
  if (call.operation == schedule::Operation::send_recv) {
    if (call.to != schedule::nobody) ordinals.sent = ++sent_[call.to];
    if (call.from != schedule::nobody) ordinals.received = ++received_[call.from];
  } else {
    ordinals.collective = ++collectives_;
  }
  waiter_.moved();
  const bool again = program_ != nullptr && alike(call, asked_);
  if (again) {
    renew(call_, call);
  } else {
    asked_ = call_ = call;
    call_.algorithm = choose(call);
    algorithm_.store(*call_.algorithm, std::memory_order_relaxed);
    program_ = &program_for(call_);
    window_ = 0;
  }
  recorder_.begin(ordinals, call_, Clock::now());
  deadline_ = deadline;
  started_ = false;
  error_.reset();
}

Progress Engine::advance() {
  if (std::exchange(armed_, false)) fabric_.arm(false);
  if (!started_)
    if (const auto waits = start()) return *waits;
  const bool moved = execution_.pass();
  if (execution_.done()) return end(stray());
  if (failure_.is_set()) return end(failure_.get());
  if (moved) {
    waiter_.moved();
    return Progress::moved;
  }
  if (const auto& stale = execution_.stale()) return end(disagreement(*stale));
  if (auto error = execution_.failure()) return end(std::move(error));
  // The links, asked whether they are well, may have found the last release, which moves nothing.
  if (execution_.done()) return end(stray());
  return rest();
}

// Nothing moved. The links are armed before the sleep and tried once more after that.
Progress Engine::rest() {
  switch (waiter_.idle(deadline_)) {
    case Waiter::Next::late:
      return end(held_up());
    case Waiter::Next::again:
      return Progress::idle;
    case Waiter::Next::sleep:
      break;
  }
  if (auto error = stray()) return end(std::move(error));
  fabric_.arm(true);
  armed_ = true;
  if (execution_.pass() || failure_.is_set()) return Progress::moved;
  publish();
  return Progress::asleep;
}

Progress Engine::end(std::optional<Error> error) {
  recorder_.end(!error);
  if (error) error_ = explain(std::move(*error));
  publish();
  return Progress::ended;
}

void Engine::publish() noexcept {
  operations_.store(counters_.operations, std::memory_order_relaxed);
  payload_sent_.store(counters_.payload_bytes_sent, std::memory_order_relaxed);
  headers_sent_.store(counters_.header_bytes_sent, std::memory_order_relaxed);
}

Counters Engine::counters() const noexcept {
  Counters counters;
  counters.operations = operations_.load(std::memory_order_relaxed);
  counters.payload_bytes_sent = payload_sent_.load(std::memory_order_relaxed);
  counters.header_bytes_sent = headers_sent_.load(std::memory_order_relaxed);
  return counters;
}

const Program& Engine::program_for(const Call& call) {
  const auto key = std::tuple(call.operation, *call.algorithm, call.root, call.to, call.from);
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  const schedule::Schedule* schedule = schedule::find(call.operation, *call.algorithm);
  assert(schedule != nullptr);
  const auto publications = publishes() ? schedule::Publications::yes : schedule::Publications::no;
  const schedule::Shape shape{
      .world = place_.world, .root = call.root, .to = call.to, .from = call.from, .nodes = place_.nodes};
  return programs_.emplace(key, lower(*schedule, place_.rank, shape, publications)).first->second;
}

schedule::Algorithm Engine::choose(const Call& call) {
  const uint64_t bytes = call.count * size_of(call.type);
  for (const auto& wanted : {call.algorithm, place_.algorithm, place_.tuning.find(call.operation, bytes)})
    if (wanted && can_run(call, *wanted)) return *wanted;
  return selection_.choose(call);
}

// In elements per chunk; the same on every rank. Partials in the memory of links bound it to W = slots - 1
// segments (schedule/verify.hpp); where contributions are reduced in one go there are none.
uint64_t Engine::window_for(const Call& call) const {
  const auto& reducer = kernels::reducer(call.type, call.reduction);
  uint64_t bytes = publishes() ? shared_window(call.count * reducer.element_bytes * place_.world) : 1 << 20;
  if (schedule::reduces(call.operation) && !schedule::reduces_at_once(*call.algorithm)) {
    const LinkCaps caps = fabric_.link_caps();
    bytes = std::min<uint64_t>(bytes, uint64_t(caps.slots - 1) * caps.slot_bytes);
  }
  return std::max<uint64_t>(1, bytes / std::max(reducer.element_bytes, reducer.accumulator_bytes));
}

// Nothing: the execution has started. Otherwise what to do meanwhile.
std::optional<Progress> Engine::start() {
  const auto open = open_links();
  if (!open) return end(open.error());
  if (!*open) {
    if (failure_.is_set()) return end(failure_.get());
    if (Clock::now() < deadline_) return Progress::asleep;  // the bell rings when the link is there
    return end(held_up());
  }
  if (window_ == 0) {
    window_ = window_for(call_);
    make_headers();
    execution_.start(*program_, call_, headers_, window_, links_);
  } else {
    if (is_pairwise(call_)) {
      make_headers();
    } else {
      headers_[0].sequence = collectives_;
      headers_[0].weight = call_.weight;
    }
    execution_.start_again(call_, headers_);
  }
  started_ = true;
  return std::nullopt;
}

void Engine::make_headers() {
  headers_.clear();
  if (!is_pairwise(call_)) {
    headers_.push_back(header_of(call_, place_.epoch, collectives_, window_));
    return;
  }
  const bool one = call_.operation == schedule::Operation::send_recv;  // peer
  for (const LinkQueue& link : program_->links) {
    const auto& first = link.sends ? call_.parts->input : call_.parts->output;
    const uint64_t count = one ? first[1] : first[link.peer + 1] - first[link.peer];
    const uint64_t sequence = one ? (link.sends ? sent_ : received_)[link.peer] : collectives_;
    headers_.push_back(pair_header_of(call_, place_.epoch, sequence, count));
  }
}

// False while one of them is being made.
Result<bool> Engine::open_links() {
  for (const LinkQueue& link : program_->links) {
    PeerLinks& peer = links_.of(link);
    if (peer.tx != nullptr || peer.rx != nullptr) continue;
    if (link.published) {
      peer.tx = link.sends ? fabric_.publication() : nullptr;
      peer.rx = link.sends ? nullptr : fabric_.publication_of(link.peer);
      continue;
    }
    auto pair = fabric_.open(link.peer, 0);
    if (!pair) return pair.error();
    if (pair->tx == nullptr) {
      unopened_ = link.peer;
      return false;
    }
    for (const int fd : {pair->tx->descriptor(), pair->rx->descriptor()})
      if (auto watched = waiter_.watch(fd); !watched) return watched.error();
    peer.tx = pair->tx;
    peer.rx = pair->rx;
  }
  return true;
}

// What a peer has sent before it went on to a call in which this rank has heard of it, if only by way of others, is there
// when that call ends.
std::optional<Error> Engine::stray() {
  strays_.beside(*program_, links_, !publishes());
  const auto found = strays_.find(collectives_);
  if (!found) return std::nullopt;
  return disagreement(*found);
}

Error Engine::disagreement(const Stray& stray) {
  const uint64_t number = stray.header.sequence;
  if (number < collectives_ || call_.operation == schedule::Operation::send_recv) disputed_ = number;
  auto differs = fmt::format("sequence number: {} here, {} there", collectives_, number);
  if (const auto ours = recorder_.of_collective(number))
    if (const auto difference = engine::difference(
            header_of(ours->call, place_.epoch, number, window_for(ours->call)), stray.header))
      differs = *difference;
  return {
      ErrorCode::mismatch,
      fmt::format("rank {} called something else than rank {} as collective #{}: {}. Every rank must make "
                  "the same calls in the same order with the same arguments",
                  stray.from, place_.rank, number, differs),
      stray.from};
}

Error Engine::late(const std::string& what, std::optional<Rank> peer) const {
  return {ErrorCode::timeout, "the deadline passed: " + what, peer};
}

Error Engine::held_up() const {
  if (!started_) return late(fmt::format("rank {} has not answered the connection", unopened_), unopened_);
  return late(execution_.waiting_for(), execution_.first_awaited());
}

Error Engine::explain(Error error) const {
  std::string text = fmt::format("rank {} of {}, operation #{} ({}): {}", place_.rank, place_.world,
                                 sequence_, describe(call_), error.message);
  if (error.code == ErrorCode::timeout) text += fmt::format("; last operations here: {}", recorder_.text(4));
  error.message = std::move(text);
  return error;
}

}  // namespace rondo::engine
