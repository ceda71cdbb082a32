#include "rondo/communicator.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/environment.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/service.hpp"
#include "communicator/arguments.hpp"
#include "communicator/attendant.hpp"
#include "communicator/operations.hpp"
#include "communicator/pending.hpp"
#include "communicator/runner.hpp"
#include "engine/engine.hpp"
#include "transport/tcp/fabric.hpp"

namespace rondo {
namespace {

Result<std::shared_ptr<bootstrap::Service>> start_service() {
  try {
    return bootstrap::Service::instance();
  } catch (const std::system_error& error) {
    return Error{ErrorCode::system, fmt::format("cannot start the service thread: {}", error.what())};
  }
}

}  // namespace

// Everything one communicator owns. The job's service thread calls the Handler; whoever drives the operations
// runs the engine; failure_ and waiter_ may be touched by any thread.
class Communicator::State final : bootstrap::Handler {
 public:
  static Result<std::unique_ptr<State>> join(const Options& options) {
    auto waiter = engine::Waiter::make(engine::Waiter::budget_for(1));
    if (!waiter) return waiter.error();
    std::unique_ptr<State> state(new State(options, std::move(*waiter)));
    auto service = start_service();
    if (!service) return service.error();
    auto job = bootstrap::Job::join(options, *service, *state);
    if (!job) return job.error();
    state->start(std::move(*job), **service);
    return state;
  }

  // What is still under way ends with `aborted`, here and now; the peers see the links close.
  ~State() override {
    if (!runner_) return;
    failure_.set({ErrorCode::aborted, fmt::format("rank {} destroyed the communicator", rank_), rank_});
    waiter_->ring();
    operations_->close();
    attendant_->stop();
  }

  Rank rank() const noexcept { return rank_; }
  uint32_t world() const noexcept { return job_->world(); }
  Counters counters() const noexcept { return engine_->counters(); }

  Result<void> run(const engine::Call& call, const CallOptions& options) {
    if (auto valid = check(call, rank(), world()); !valid) return valid;
    Operation operation{call, deadline_after(options.timeout.value_or(timeout_))};
    operations_->run(operation);
    if (operation.error) return std::move(*operation.error);
    return {};
  }

  Result<Work> submit(const engine::Call& call, const CallOptions& options) {
    if (auto valid = check(call, rank(), world()); !valid) return valid.error();
    const TimePoint deadline = deadline_after(options.timeout.value_or(timeout_));
    std::unique_ptr<PendingOperation> pending(new PendingOperation{{call, deadline}, operations_});
    operations_->submit(pending->operation);
    return Work(std::move(pending));
  }

  void abort() noexcept {
    runner_->spread({ErrorCode::aborted, fmt::format("rank {} aborted the communicator", rank()), rank()});
  }

 private:
  State(const Options& options, std::unique_ptr<engine::Waiter> waiter)
      : rank_(*options.rank),
        timeout_(*options.timeout),
        waiter_(std::move(waiter)),
        fabric_([this](Rank peer, Lane lane) { job_->connect(peer, lane); }) {}

  void start(std::unique_ptr<bootstrap::Job> job, bootstrap::Service& service) {
    job_ = std::move(job);
    waiter_->set_budget(engine::Waiter::budget_for(job_->local_world()));
    const engine::Engine::Place place{job_->rank(), job_->world(), job_->epoch()};
    engine_ = std::make_unique<engine::Engine>(place, fabric_, *waiter_, failure_);
    runner_ = std::make_unique<Runner>();
    operations_ = std::make_shared<Operations>(*runner_);
    attendant_ = std::make_shared<Attendant>(service.context(), operations_, waiter_);
    runner_->start({*engine_, failure_, *waiter_, fabric_, *job_, *attendant_});
  }

  void connected(Rank peer, uint16_t lane, Result<Descriptor> socket) noexcept override {
    fabric_.adopt(peer, lane, std::move(socket));
    waiter_->ring();
  }
  void failed(const Error& error) noexcept override {
    // A rank that waits for this one blames it; this one knows that it waits itself.
    failure_.set({error.code, error.message, error.peer == rank_ ? std::nullopt : error.peer});
    waiter_->ring();
  }

  Rank rank_;
  milliseconds timeout_;
  engine::Failure failure_;
  std::shared_ptr<engine::Waiter> waiter_;
  tcp::TcpFabric fabric_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Runner> runner_;
  std::shared_ptr<Operations> operations_;  // shared with every Work
  std::shared_ptr<Attendant> attendant_;    // shared with the service thread
  std::unique_ptr<bootstrap::Job> job_;     // last, so destroyed first: no Handler call outlives it
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

Result<Work> Communicator::submit(const engine::Call& call, const CallOptions& options) {
  if (!state_) return Error{ErrorCode::invalid_argument, "this communicator was moved from"};
  return state_->submit(call, options);
}

Rank Communicator::rank() const noexcept { return state_ ? state_->rank() : 0; }
uint32_t Communicator::world() const noexcept { return state_ ? state_->world() : 0; }
Counters Communicator::counters() const noexcept { return state_ ? state_->counters() : Counters(); }
void Communicator::abort() noexcept {
  if (state_) state_->abort();
}

}  // namespace rondo
