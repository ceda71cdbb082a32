#include "communicator/state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <system_error>

#include "base/fault.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "communicator/accounts.hpp"
#include "communicator/arguments.hpp"
#include "communicator/pending.hpp"
#include "communicator/state_json.hpp"
#include "schedule/catalogue.hpp"

namespace rondo {
namespace {

// How long a rank that cannot join looks for somebody to tell.
constexpr milliseconds declining{2000};

Result<std::shared_ptr<bootstrap::Service>> start_service() {
  try {
    return bootstrap::Service::instance();
  } catch (const std::system_error& error) {
    return Error{ErrorCode::system, fmt::format("cannot start the service thread: {}{}", error.what(),
                                                limit_behind(error.code().value()))};
  }
}

}  // namespace

Result<std::unique_ptr<Communicator::State>> Communicator::State::join(const Options& options,
                                                                       const bootstrap::Policy& policy,
                                                                       const bootstrap::Meeting& meeting) {
  try {
    return make(options, policy, meeting);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::system, fmt::format("rank {} could not join: memory has run out", *options.rank)};
  }
}

Error Communicator::State::declined(const Error& why, const Options& options, const Lookup& lookup) {
  auto essentials = essential(options, lookup);
  if (!essentials || essentials->world == 1u) return why;
  essentials->init_timeout = declining;
  const auto service = start_service();
  for (const bool tls : {false, true}) {
    if (!service || essentials->tls.value_or(tls) != tls) continue;
    Options attempt = *essentials;
    attempt.tls = tls;
    if (bootstrap::Job::decline(attempt, why, *service)) break;
  }
  return why;
}

Result<std::unique_ptr<Communicator::State>> Communicator::State::make(const Options& options,
                                                                       const bootstrap::Policy& policy,
                                                                       const bootstrap::Meeting& meeting) {
  auto waiter = engine::Waiter::make(engine::Waiter::budget_for(1));
  if (!waiter) return waiter.error();
  std::unique_ptr<State> state(new State(options, std::move(*waiter)));
  auto service = start_service();
  if (!service) return service.error();
  auto job = bootstrap::Job::join(options, policy, *service, *state, {}, meeting);
  if (!job) return job.error();
  if (auto started = state->start(std::move(*job), **service); !started) return started.error();
  if (meeting.root.empty()) state->home_ = options.root;  // a meeting's is nobody else's
  return state;
}

Communicator::State::State(const Options& options, std::unique_ptr<engine::Waiter> waiter)
    : process_(::getpid()),
      options_(options),
      rank_(*options.rank),
      timeout_(*options.timeout),
      waiter_(std::move(waiter)),
      tcp_([this](Rank peer, Lane lane) { job_->connect(peer, lane); }) {}

Communicator::State::~State() {
  if (state_door_ != nullptr) state_door_->remove(told_as_);
  if (postman_) postman_->stop();
  postman_.reset();
  if (!runner_) return;
  failure_.set({ErrorCode::aborted, fmt::format("rank {} destroyed the communicator", rank_), rank_});
  waiter_->ring();
  operations_->close();
  // Its timer must be gone before the service, which the job may be the last to hold.
  attendant_->stop();
  attendant_.reset();
}

bool Communicator::State::is_of_this_process() const noexcept { return process_ == ::getpid(); }

TimePoint Communicator::State::deadline_of(const CallOptions& call) const {
  return deadline_after(call.timeout.value_or(timeout_));
}

Result<void> Communicator::State::run(const engine::Call& call, const CallOptions& options,
                                      std::unique_ptr<Group> group) {
  if (auto valid = check(call, rank(), world()); !valid) return valid;
  Operation operation{call, deadline_of(options), std::move(group)};
  operations_->run(operation);
  if (operation.error) return std::move(*operation.error);
  return {};
}

Result<Work> Communicator::State::submit(const engine::Call& call, const CallOptions& options,
                                         std::unique_ptr<Group> group) {
  if (auto valid = check(call, rank(), world()); !valid) return valid.error();
  std::unique_ptr<PendingOperation> pending(
      new PendingOperation{{call, deadline_of(options), std::move(group)}, operations_});
  operations_->submit(pending->operation);
  return Work(std::move(pending));
}

void Communicator::State::abort() noexcept {
  runner_->spread({ErrorCode::aborted, fmt::format("rank {} aborted the communicator", rank()), rank()});
}

Result<void> Communicator::State::start(std::unique_ptr<bootstrap::Job> job, bootstrap::Service& service) {
  job_ = std::move(job);
  shm_ = memory_.take_fabric();
  if (shm_)
    if (auto watched = watch(service); !watched) return watched;
  waiter_->set_budget(engine::Waiter::budget_for(job_->local_world()));
  const engine::Engine::Place place{
      job_->rank(),  job_->world(), job_->epoch(),       schedule::algorithm_named(job_->policy().algorithm),
      job_->nodes(), tuning(),      job_->policy().cores};
  Fabric& fabric = with_faults(shm_ ? static_cast<Fabric&>(*shm_) : tcp_);
  engine_ = std::make_unique<engine::Engine>(place, fabric, *waiter_, failure_);
  runner_ = std::make_unique<Runner>();
  operations_ = std::make_shared<Operations>(*runner_);
  attendant_ = std::make_shared<Attendant>(service.context(), operations_, waiter_);
  runner_->start({*engine_, failure_, *waiter_, fabric, *job_, *attendant_, injector_.get()});
  running_.store(engine_.get(), std::memory_order_release);
  state_door_ = &service.state_door();
  told_as_ = state_door_->add([this] {
    return state_json(*job_, {transport(), options_.tls.value_or(false)}, *engine_, failure_);
  });
  if (options_.state_signal.value_or(false)) state_door_->answer_signal();
  return {};
}

// Nothing is put around the links where no fault of this rank is configured.
Fabric& Communicator::State::with_faults(Fabric& fabric) {
  const auto faults = parse_faults(options_.fault, world());
  assert(faults.ok());  // the options are complete
  if (std::ranges::none_of(*faults, [&](const Fault& fault) { return fault.rank == rank_; })) return fabric;
  injector_ = std::make_unique<faulty::Injector>(rank_, *faults);
  faulty_ = std::make_unique<faulty::FaultyFabric>(fabric, *injector_, world());
  return *faulty_;
}

// Of a job like this one, or none.
engine::Tuning Communicator::State::tuning() const {
  const std::string& table = job_->policy().table;
  if (table.empty()) return {};
  const auto tuning = engine::Tuning::parse(table);
  if (!tuning) return {};  // which is so on every rank; rank 0 has refused such a file
  if (tuning->situation() == engine::Tuning::Situation{world(), std::string(transport())}) return *tuning;
  log::line(log::Level::info, int(rank_), "the tuning file is for {} ranks over {}; it is not used here",
            tuning->situation().world, tuning->situation().transport);
  return {};
}

Result<void> Communicator::State::watch(bootstrap::Service& service) {
  if (auto watched = waiter_->watch(shm_->bell()); !watched) return watched;
  auto post = memory_.take_post();
  postman_ = std::make_shared<Postman>(service.context(), std::move(post.borrower));
  return postman_->start(std::move(post.mailbox));
}

// ---- The service thread.

void Communicator::State::connected(Rank peer, uint16_t lane, Result<Stream> stream) {
  tcp_.adopt(peer, lane, std::move(stream));
  waiter_->ring();
}

void Communicator::State::failed(const Error& error) {
  // A rank that waits for this one blames it; this one knows that it waits itself. Not so where all agree.
  const bool verdict = error.code == ErrorCode::mismatch;
  const auto peer = error.peer == rank_ && !verdict ? std::nullopt : error.peer;
  try {
    failure_.set({error.code, error.message, peer});
  } catch (const std::bad_alloc&) {
    // So short that the text needs none.
    failure_.set({error.code, "no memory left", peer});
  }
  waiter_->ring();
}

bootstrap::Account Communicator::State::account(const bootstrap::CallKey& key) {
  // Asked before this rank has come out of joining: it has called nothing.
  const engine::Engine* engine = running_.load(std::memory_order_acquire);
  return engine != nullptr ? account_of(engine->recorder(), rank_, key) : bootstrap::Account{};
}

void Communicator::State::summarised(const bootstrap::Summary& summary) {
  if (running_.load(std::memory_order_acquire) != nullptr) runner_->summarised(summary);
}

}  // namespace rondo
