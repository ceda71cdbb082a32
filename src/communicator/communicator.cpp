#include "rondo/communicator.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/environment.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/service.hpp"
#include "communicator/arguments.hpp"
#include "communicator/shared_memory.hpp"
#include "communicator/turnstile.hpp"
#include "engine/engine.hpp"
#include "engine/selection.hpp"
#include "transport/tcp/fabric.hpp"

namespace rondo {
namespace {

using schedule::Operation;

// How long a broken link waits for the control plane to say which rank is the cause: a neighbour may have
// closed only because it had learnt of the failure first.
constexpr milliseconds verdict_time{250};

engine::Call call_of(Operation operation, const void* input, void* output, size_t count, DataType type) {
  engine::Call call{.operation = operation, .algorithm = engine::select(operation)};
  call.type = type;
  call.count = count;
  call.input = static_cast<const std::byte*>(input);
  call.output = static_cast<std::byte*>(output);
  return call;
}

Result<std::shared_ptr<bootstrap::Service>> start_service() {
  try {
    return bootstrap::Service::instance();
  } catch (const std::system_error& error) {
    return Error{ErrorCode::system, fmt::format("cannot start the service thread: {}", error.what())};
  }
}

}  // namespace

// Everything one communicator owns. The job's service thread calls the Handler; whoever holds the turnstile
// drives the engine; failure_ and waiter_ may be touched by any thread.
class Communicator::State final : bootstrap::Handler {
 public:
  static Result<std::unique_ptr<State>> join(const Options& options) {
    auto waiter = engine::Waiter::make(engine::Waiter::budget_for(1));
    if (!waiter) return waiter.error();
    std::unique_ptr<State> state(new State(options, std::move(*waiter)));
    auto service = start_service();
    if (!service) return service.error();
    auto job = bootstrap::Job::join(options, std::move(*service), *state);
    if (!job) return job.error();
    if (auto started = state->start(std::move(*job)); !started) return started.error();
    return state;
  }

  Rank rank() const noexcept { return rank_; }
  uint32_t world() const noexcept { return job_->world(); }
  std::string_view transport() const noexcept { return world() == 1 ? "local" : shm_ ? "shm" : "tcp"; }
  Counters counters() const noexcept {
    const auto turn = turnstile_.enter(TimePoint::max());
    return engine_->counters();
  }

  Result<void> run(const engine::Call& call, const CallOptions& options) {
    if (auto valid = check(call, rank(), world()); !valid) return valid;
    const TimePoint deadline = deadline_after(options.timeout.value_or(timeout_));
    const auto turn = turnstile_.enter(deadline);
    if (!turn) return skipped(call);
    if (failure_.is_set()) return told();
    auto outcome = engine_->run(call, deadline);
    if (!outcome) return fail(outcome.error());
    return outcome;
  }

  void abort() noexcept {
    spread({ErrorCode::aborted, fmt::format("rank {} aborted the communicator", rank()), rank()});
  }

 private:
  State(const Options& options, std::unique_ptr<engine::Waiter> waiter)
      : rank_(*options.rank),
        timeout_(*options.timeout),
        waiter_(std::move(waiter)),
        tcp_([this](Rank peer, Lane lane) { job_->connect(peer, lane); }) {}

  Result<void> start(std::unique_ptr<bootstrap::Job> job) {
    job_ = std::move(job);
    shm_ = memory_.take_fabric();
    if (shm_)
      if (auto watched = waiter_->watch(shm_->bell()); !watched) return watched;
    waiter_->set_budget(engine::Waiter::budget_for(job_->local_world()));
    const engine::Engine::Place place{job_->rank(), job_->world(), job_->epoch()};
    engine_ = std::make_unique<engine::Engine>(place, fabric(), *waiter_, failure_);
    return {};
  }

  Fabric& fabric() noexcept { return shm_ ? static_cast<Fabric&>(*shm_) : tcp_; }

  // Any thread. The driver, if there is one, finds the error word set.
  void spread(const Error& error) noexcept {
    if (failure_.set(error)) job_->announce(error);
    waiter_->ring();
  }

  // A call whose turn did not come in time was not made, so every later one would meet the wrong calls of its peers.
  Error skipped(const engine::Call& call) noexcept {
    Error error{
        ErrorCode::timeout,
        fmt::format("rank {}: {} waited for earlier calls on this communicator until its deadline passed",
                    rank(), describe(call))};
    spread(error);
    return error;
  }

  // The driver's call failed: the whole communicator has, and every rank is told.
  Error fail(Error error) {
    if (error.code == ErrorCode::peer_lost) await_verdict();
    told_ = true;
    if (failure_.set(error)) {
      job_->announce(error);
    } else if (const Error cause = failure_.get(); error.message.find(cause.message) == std::string::npos) {
      error = {cause.code, error.message + "; cause: " + cause.message, cause.peer ? cause.peer : error.peer};
    }
    fabric().close();
    return error;
  }

  void await_verdict() {
    const TimePoint until = deadline_after(verdict_time);
    while (!failure_.is_set() && Clock::now() < until) waiter_->sleep(until);
  }

  // The communicator has failed between two calls, or in an earlier one.
  Error told() {
    const Error first = failure_.get();
    if (!std::exchange(told_, true)) return first;
    return {ErrorCode::aborted, "this communicator has failed: " + first.message, first.peer};
  }

  bootstrap::Sharing* sharing() noexcept override { return &memory_; }
  void connected(Rank peer, uint16_t lane, Result<Descriptor> socket) noexcept override {
    tcp_.adopt(peer, lane, std::move(socket));
    waiter_->ring();
  }
  void failed(const Error& error) noexcept override {
    // A rank that waits for this one blames it; this one knows that it waits itself.
    failure_.set({error.code, error.message, error.peer == rank_ ? std::nullopt : error.peer});
    waiter_->ring();
  }

  Rank rank_;
  milliseconds timeout_;
  mutable Turnstile turnstile_;
  engine::Failure failure_;
  bool told_ = false;  // the caller has been given the failure; turn holder only
  std::unique_ptr<engine::Waiter> waiter_;
  SharedMemory memory_;  // until join returns
  std::unique_ptr<shm::ShmFabric> shm_;
  tcp::TcpFabric tcp_;  // unused where there is shm_
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<bootstrap::Job> job_;  // last, so destroyed first: no Handler call outlives it
};

Communicator::Communicator(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Result<Communicator> Communicator::from_environment(const Options& options) {
  const auto level = log_level(process_environment);
  if (!level) return level.error();
  log::set_level(*level);
  auto resolved = resolve(options, process_environment);
  if (!resolved) return resolved.error();
  return create(*resolved);
}

Result<Communicator> Communicator::create(const Options& options) {
  auto complete_options = complete(options);
  if (!complete_options) return complete_options.error();
  auto state = State::join(*complete_options);
  if (!state) return state.error();
  return Communicator(std::move(*state));
}

Result<void> Communicator::run(const engine::Call& call, const CallOptions& options) {
  if (!state_) return Error{ErrorCode::invalid_argument, "this communicator was moved from"};
  return state_->run(call, options);
}

Rank Communicator::rank() const noexcept { return state_ ? state_->rank() : 0; }
uint32_t Communicator::world() const noexcept { return state_ ? state_->world() : 0; }
std::string_view Communicator::transport() const noexcept { return state_ ? state_->transport() : "local"; }
Counters Communicator::counters() const noexcept { return state_ ? state_->counters() : Counters(); }
void Communicator::abort() noexcept {
  if (state_) state_->abort();
}

Result<void> Communicator::same_size(const char* operation, size_t expected, size_t given) {
  if (expected == given) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("{}: the second buffer must have {} elements, not {}",
                                                        operation, expected, given)};
}

Result<void> Communicator::all_reduce(const void* input, void* output, size_t count, DataType type,
                                      Reduction reduction, const CallOptions& options) {
  engine::Call call = call_of(Operation::all_reduce, input, output, count, type);
  call.reduction = reduction;
  return run(call, options);
}

Result<void> Communicator::reduce_scatter(const void* input, void* output, size_t count, DataType type,
                                          Reduction reduction, const CallOptions& options) {
  engine::Call call = call_of(Operation::reduce_scatter, input, output, count, type);
  call.reduction = reduction;
  return run(call, options);
}

Result<void> Communicator::all_gather(const void* input, void* output, size_t count, DataType type,
                                      const CallOptions& options) {
  return run(call_of(Operation::all_gather, input, output, count, type), options);
}

Result<void> Communicator::broadcast(void* data, size_t count, DataType type, Rank root,
                                     const CallOptions& options) {
  engine::Call call = call_of(Operation::broadcast, data, data, count, type);
  call.root = root;
  return run(call, options);
}

Result<void> Communicator::barrier(const CallOptions& options) {
  return run(call_of(Operation::barrier, nullptr, nullptr, 0, DataType::f32), options);
}

}  // namespace rondo
