#include "rondo/communicator.hpp"

#include <fmt/format.h>

#include "base/environment.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/service.hpp"
#include "communicator/arguments.hpp"
#include "communicator/turnstile.hpp"
#include "engine/engine.hpp"
#include "engine/selection.hpp"
#include "transport/tcp/fabric.hpp"

namespace rondo {
namespace {

using schedule::Operation;

// How long a broken link waits for the control plane to say which rank is the cause: a neighbour may have
// closed only because it had learnt of the failure first.
constexpr milliseconds verdict_time{500};

const std::byte* bytes(const void* data) { return static_cast<const std::byte*>(data); }
std::byte* bytes(void* data) { return static_cast<std::byte*>(data); }

}  // namespace

// Everything one communicator owns. The job's service thread calls the Handler; whoever holds the turnstile
// drives the engine; failure_ and waiter_ may be touched by any thread.
class Communicator::State final : bootstrap::Handler {
 public:
  static Result<std::unique_ptr<State>> join(const Options& options) {
    auto waiter = engine::Waiter::make(engine::Waiter::budget_for(1));
    if (!waiter) return waiter.error();
    std::unique_ptr<State> state(new State(*options.timeout, std::move(*waiter)));
    auto job = bootstrap::Job::join(options, bootstrap::Service::instance(), *state);
    if (!job) return job.error();
    state->start(std::move(*job));
    return state;
  }

  Rank rank() const noexcept { return job_->rank(); }
  uint32_t world() const noexcept { return job_->world(); }
  Counters counters() const noexcept {
    const auto turn = turnstile_.enter(TimePoint::max());
    return engine_->counters();
  }

  Result<void> run(engine::Call call, const CallOptions& options) {
    call.algorithm = engine::select(call.operation);
    if (auto valid = check(call, rank(), world()); !valid) return valid;
    const TimePoint deadline = deadline_after(options.timeout.value_or(timeout_));
    const auto turn = turnstile_.enter(deadline);
    if (!turn)
      return Error{ErrorCode::timeout,
                   fmt::format("rank {}: {} waited for this communicator's earlier calls until its "
                               "deadline passed; nothing was sent",
                               rank(), describe(call))};
    if (failure_.is_set()) return told();
    auto outcome = engine_->run(call, deadline);
    if (!outcome) return fail(outcome.error());
    return outcome;
  }

  void abort() noexcept {
    const Error error{ErrorCode::aborted, fmt::format("rank {} aborted the communicator", rank()), rank()};
    if (failure_.set(error)) job_->announce(error);
    waiter_->ring();
  }

 private:
  State(milliseconds timeout, std::unique_ptr<engine::Waiter> waiter)
      : timeout_(timeout),
        waiter_(std::move(waiter)),
        fabric_([this](Rank peer, Lane lane) { job_->connect(peer, lane); }) {}

  void start(std::unique_ptr<bootstrap::Job> job) {
    job_ = std::move(job);
    waiter_->set_budget(engine::Waiter::budget_for(job_->local_world()));
    const engine::Engine::Place place{job_->rank(), job_->world(), job_->epoch()};
    engine_ = std::make_unique<engine::Engine>(place, fabric_, *waiter_, failure_);
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
    fabric_.close();
    return error;
  }

  void await_verdict() {
    const TimePoint until = deadline_after(verdict_time);
    while (!failure_.is_set() && waiter_->idle(until)) {
    }
  }

  // The communicator has failed between two calls, or in an earlier one.
  Error told() {
    const Error first = failure_.get();
    if (!std::exchange(told_, true)) return first;
    return {ErrorCode::aborted, "this communicator has failed: " + first.message, first.peer};
  }

  void connected(Rank peer, uint16_t lane, Result<Descriptor> socket) noexcept override {
    fabric_.adopt(peer, lane, std::move(socket));
    waiter_->ring();
  }
  void failed(const Error& error) noexcept override {
    failure_.set(error);
    waiter_->ring();
  }

  milliseconds timeout_;
  mutable Turnstile turnstile_;
  engine::Failure failure_;
  bool told_ = false;  // the caller has been given the failure; turn holder only
  std::unique_ptr<engine::Waiter> waiter_;
  tcp::TcpFabric fabric_;
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

Rank Communicator::rank() const noexcept { return state_->rank(); }
uint32_t Communicator::world() const noexcept { return state_->world(); }
Counters Communicator::counters() const noexcept { return state_->counters(); }
void Communicator::abort() noexcept {
  if (state_) state_->abort();
}

Result<void> Communicator::same_size(const char* operation, size_t expected, size_t given) {
  if (expected == given) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("{}: the second buffer must have {} elements, not {}",
                                                        operation, expected, given)};
}

Result<void> Communicator::all_reduce(const void* input, void* output, size_t count, DataType type,
                                      Reduction reduction, const CallOptions& call) {
  return run({.operation = Operation::all_reduce,
              .algorithm = {},
              .type = type,
              .reduction = reduction,
              .count = count,
              .input = bytes(input),
              .output = bytes(output)},
             call);
}

Result<void> Communicator::reduce_scatter(const void* input, void* output, size_t count, DataType type,
                                          Reduction reduction, const CallOptions& call) {
  return run({.operation = Operation::reduce_scatter,
              .algorithm = {},
              .type = type,
              .reduction = reduction,
              .count = count,
              .input = bytes(input),
              .output = bytes(output)},
             call);
}

Result<void> Communicator::all_gather(const void* input, void* output, size_t count, DataType type,
                                      const CallOptions& call) {
  return run({.operation = Operation::all_gather,
              .algorithm = {},
              .type = type,
              .count = count,
              .input = bytes(input),
              .output = bytes(output)},
             call);
}

Result<void> Communicator::broadcast(void* data, size_t count, DataType type, Rank root,
                                     const CallOptions& call) {
  return run({.operation = Operation::broadcast,
              .algorithm = {},
              .type = type,
              .count = count,
              .root = root,
              .input = bytes(data),
              .output = bytes(data)},
             call);
}

Result<void> Communicator::barrier(const CallOptions& call) {
  return run({.operation = Operation::barrier, .algorithm = {}}, call);
}

}  // namespace rondo
