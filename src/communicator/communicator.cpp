#include "rondo/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include "base/environment.hpp"
#include "base/launcher.hpp"
#include "base/log.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/regroup.hpp"
#include "bootstrap/service.hpp"
#include "bootstrap/socket.hpp"
#include "communicator/accounts.hpp"
#include "communicator/arguments.hpp"
#include "communicator/attendant.hpp"
#include "communicator/growth.hpp"
#include "communicator/operations.hpp"
#include "communicator/pending.hpp"
#include "communicator/postman.hpp"
#include "communicator/runner.hpp"
#include "communicator/shared_memory.hpp"
#include "communicator/split.hpp"
#include "communicator/state_json.hpp"
#include "engine/engine.hpp"
#include "engine/selection.hpp"
#include "schedule/catalogue.hpp"
#include "transport/tcp/fabric.hpp"

namespace rondo {
namespace {

static_assert(engine::Tuning::longest_text <= bootstrap::longest_table);

constexpr int most_refusals = 3;

// What this rank's options say; only rank 0's table counts, so the others' need not be there.
Result<bootstrap::Policy> policy_of(const Options& options) {
  bootstrap::Policy policy{options.algorithm, options.reproducible.value_or(false), {}};
  if (options.tuning.empty() || options.rank != 0u) return policy;
  const auto tuning = engine::read_tuning(options.tuning);
  if (!tuning) return tuning.error();
  policy.table = tuning->text();
  return policy;
}

Result<std::shared_ptr<bootstrap::Service>> start_service() {
  try {
    return bootstrap::Service::instance();
  } catch (const std::system_error& error) {
    const int cause = error.code().value();
    const bool limited = cause == EMFILE || cause == ENFILE;
    return Error{ErrorCode::system,
                 fmt::format("cannot start the service thread: {}{}{}", error.what(), limited ? "; " : "",
                             limited ? bootstrap::descriptor_limit(cause) : "")};
  }
}

}  // namespace

// Everything one communicator owns. The job's service thread calls the Handler; whoever drives the operations
// runs the engine; failure_ and waiter_ may be touched by any thread.
class Communicator::State final : bootstrap::Handler {
 public:
  static Result<std::unique_ptr<State>> join(const Options& options, const bootstrap::Policy& policy,
                                             const bootstrap::Meeting& meeting = {}) {
    try {
      return make(options, policy, meeting);
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::system,
                   fmt::format("rank {} could not join: memory has run out", *options.rank)};
    }
  }

  static Result<std::unique_ptr<State>> make(const Options& options, const bootstrap::Policy& policy,
                                             const bootstrap::Meeting& meeting) {
    auto waiter = engine::Waiter::make(engine::Waiter::budget_for(1));
    if (!waiter) return waiter.error();
    std::unique_ptr<State> state(new State(options, std::move(*waiter)));
    auto service = start_service();
    if (!service) return service.error();
    auto job = bootstrap::Job::join(options, policy, *service, *state, {}, meeting);
    if (!job) return job.error();
    if (auto started = state->start(std::move(*job), **service); !started) return started.error();
    return state;
  }

  // What is still under way ends with `aborted`, here and now; the peers see the links close.
  ~State() override {
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

  Rank rank() const noexcept { return rank_; }
  uint32_t world() const noexcept { return job_->world(); }
  std::string_view transport() const noexcept { return world() == 1 ? "local" : shm_ ? "shm" : "tcp"; }
  Counters counters() const noexcept { return engine_->counters(); }

  bool reproducible() const noexcept { return job_->policy().reproducible; }
  std::string_view algorithm() const noexcept { return name_of(engine_->algorithm()); }

  Result<void> run(const engine::Call& call, const CallOptions& options, std::unique_ptr<Group> group) {
    if (auto valid = check(call, rank(), world()); !valid) return valid;
    Operation operation{call, deadline_after(options.timeout.value_or(timeout_)), std::move(group)};
    operations_->run(operation);
    if (operation.error) return std::move(*operation.error);
    return {};
  }

  Result<Work> submit(const engine::Call& call, const CallOptions& options, std::unique_ptr<Group> group) {
    if (auto valid = check(call, rank(), world()); !valid) return valid.error();
    const TimePoint deadline = deadline_after(options.timeout.value_or(timeout_));
    std::unique_ptr<PendingOperation> pending(
        new PendingOperation{{call, deadline, std::move(group)}, operations_});
    operations_->submit(pending->operation);
    return Work(std::move(pending));
  }

  // A place to meet for a part of this communicator that this rank leads.
  Result<bootstrap::Meeting> meet() const { return job_->meet(); }

  // Not collective over this communicator but over the part.
  Result<std::unique_ptr<State>> join_part(const Part& part, bootstrap::Meeting meeting) const {
    const Options options = options_of_part(uint32_t(part.members.size()), part.rank, meeting.root);
    std::optional<Error> own;  // of this communicator, in its own ranks
    meeting.failure = [this, &own] {
      if (failure_.is_set()) own = failure_.get();
      return own;
    };
    auto state = join_as(part, options, meeting);
    if (!state && !own) return as_parent_sees(state.error(), part.members);
    return state;
  }

  // The same ranks and those that come to `root`. As in a part, a failure of this communicator ends the wait.
  Result<std::unique_ptr<State>> grow(uint32_t newcomers, const std::string& root,
                                      const CallOptions& call) const {
    Options options = options_of_part(world() + newcomers, rank_, root);
    if (call.timeout) options.init_timeout = call.timeout;
    bootstrap::Meeting open;
    open.failure = [this] { return failure_.is_set() ? std::optional(failure_.get()) : std::nullopt; };
    auto state = join(options, job_->policy(), open);
    if (state) (*state)->home_ = root;
    return state;
  }

  // What all that are left hold becomes the successor; what has not become it is kept as a door, which tells
  // those that took it for the successor.
  Result<std::unique_ptr<State>> shrink(const CallOptions& call) {
    const std::lock_guard lock(shrinking_);
    const TimePoint deadline = deadline_after(call.timeout.value_or(timeout_));
    if (world() == 1) return join_alone();
    std::unique_ptr<State> next;
    std::string last;  // why there is none
    std::vector<Rank> members;
    int refusals = 0;  // by the system, of a communicator of these members
    while (true) {
      auto step = job_->regroup(next ? next->job_->epoch() : 0, deadline);
      if (step && step->gone_on) return succeed(std::move(next));
      if (next) formers_.push_back(next->job_->keep_door());
      next.reset();
      if (!step) return because(step.error(), last);
      auto joined = join_planned(*step, deadline);
      if (joined) {
        next = std::move(*joined);
      } else {
        last = "; the last attempt to join ended with: " + joined.error().message;
        // A death may look so; then the members differ the next time.
        if (joined.error().code != ErrorCode::system) continue;
        refusals = step->members == members ? refusals + 1 : 1;
        members = step->members;
        if (refusals < most_refusals) continue;
        (void)job_->regroup(0, Clock::now());  // the others need not wait
        return joined.error();
      }
    }
  }

  const std::string& home() const noexcept { return home_; }
  void set_home(const std::string& root) { home_ = root; }
  const std::vector<Rank>& parents() const noexcept { return parents_; }

  void abort() noexcept {
    runner_->spread({ErrorCode::aborted, fmt::format("rank {} aborted the communicator", rank()), rank()});
  }

 private:
  State(const Options& options, std::unique_ptr<engine::Waiter> waiter)
      : options_(options),
        rank_(*options.rank),
        timeout_(*options.timeout),
        waiter_(std::move(waiter)),
        tcp_([this](Rank peer, Lane lane) { job_->connect(peer, lane); }) {}

  Options options_of_part(uint32_t world, Rank rank, const std::string& root) const {
    Options options = options_;
    options.rank = rank;
    options.world = world;
    options.root = root;
    return options;
  }

  Result<std::unique_ptr<State>> join_as(const Part& part, const Options& options,
                                         const bootstrap::Meeting& meeting) const {
    auto state = join(options, job_->policy(), meeting);
    if (state) (*state)->parents_ = part.members;
    return state;
  }

  Result<std::unique_ptr<State>> join_alone() const {
    auto state = join_as({{0}, 0}, options_of_part(1, 0, {}), {});
    if (state) (*state)->home_ = home_;
    return state;
  }

  // This communicator has failed already: what ends the join is that the plan is off, or the deadline.
  Result<std::unique_ptr<State>> join_planned(const bootstrap::Regrouping& plan, TimePoint deadline) const {
    const auto own = std::find(plan.members.begin(), plan.members.end(), rank_);
    const Part part{plan.members, Rank(own - plan.members.begin())};
    bootstrap::Meeting meeting = plan.meeting;
    meeting.failure = [off = plan.meeting.failure, deadline]() -> std::optional<Error> {
      if (Clock::now() >= deadline) return Error{ErrorCode::timeout, "the deadline of shrink has passed"};
      return off();
    };
    return join_as(part, options_of_part(uint32_t(part.members.size()), part.rank, meeting.root), meeting);
  }

  std::unique_ptr<State> succeed(std::unique_ptr<State> next) {
    for (const auto& former : formers_) former->succeeded_by(next->job_->epoch());
    next->formers_ = std::move(formers_);
    next->formers_.push_back(job_->keep_door());
    formers_.clear();
    next->home_ = home_;
    return next;
  }

  Error because(Error error, const std::string& why) const {
    error.message = fmt::format("rank {} of {}, shrink: {}{}", rank_, world(), error.message, why);
    return error;
  }

  Result<void> start(std::unique_ptr<bootstrap::Job> job, bootstrap::Service& service) {
    job_ = std::move(job);
    shm_ = memory_.take_fabric();
    if (shm_)
      if (auto watched = watch(service); !watched) return watched;
    waiter_->set_budget(engine::Waiter::budget_for(job_->local_world()));
    const engine::Engine::Place place{job_->rank(),  job_->world(),
                                      job_->epoch(), schedule::algorithm_named(job_->policy().algorithm),
                                      job_->nodes(), tuning()};
    Fabric& fabric = shm_ ? static_cast<Fabric&>(*shm_) : tcp_;
    engine_ = std::make_unique<engine::Engine>(place, fabric, *waiter_, failure_);
    runner_ = std::make_unique<Runner>();
    operations_ = std::make_shared<Operations>(*runner_);
    attendant_ = std::make_shared<Attendant>(service.context(), operations_, waiter_);
    runner_->start({*engine_, failure_, *waiter_, fabric, *job_, *attendant_});
    running_.store(engine_.get(), std::memory_order_release);
    state_door_ = &service.state_door();
    told_as_ = state_door_->add([this] { return state_json(*job_, transport(), *engine_, failure_); });
    if (options_.state_signal.value_or(false)) state_door_->answer_signal();
    return {};
  }

  // Of a job like this one, or none.
  engine::Tuning tuning() const {
    const std::string& table = job_->policy().table;
    if (table.empty()) return {};
    const auto tuning = engine::Tuning::parse(table);
    assert(tuning.ok());  // rank 0 has read it
    if (tuning->situation() == engine::Tuning::Situation{world(), std::string(transport())}) return *tuning;
    log::line(log::Level::info, int(rank_), "the tuning file is for {} ranks over {}; it is not used here",
              tuning->situation().world, tuning->situation().transport);
    return {};
  }

  Result<void> watch(bootstrap::Service& service) {
    if (auto watched = waiter_->watch(shm_->bell()); !watched) return watched;
    auto post = memory_.take_post();
    postman_ = std::make_shared<Postman>(service.context(), std::move(post.borrower));
    return postman_->start(std::move(post.mailbox));
  }

  bootstrap::Sharing* sharing() noexcept override { return &memory_; }
  void connected(Rank peer, uint16_t lane, Result<Descriptor> socket) override {
    tcp_.adopt(peer, lane, std::move(socket));
    waiter_->ring();
  }
  void failed(const Error& error) override {
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

  bootstrap::Account account(const bootstrap::CallKey& key) override {
    // Asked before this rank has come out of joining: it has called nothing.
    const engine::Engine* engine = running_.load(std::memory_order_acquire);
    return engine != nullptr ? account_of(engine->recorder(), rank_, key) : bootstrap::Account{};
  }
  void summarised(const bootstrap::Summary& summary) override {
    if (running_.load(std::memory_order_acquire) != nullptr) runner_->summarised(summary);
  }

  Options options_;  // complete
  Rank rank_;
  milliseconds timeout_;
  std::mutex shrinking_;
  std::vector<std::shared_ptr<bootstrap::FormerJob>> formers_;  // from which this one came, in a long line
  std::vector<Rank> parents_;
  std::string home_;  // where newcomers look for it; "": they cannot know
  engine::Failure failure_;
  std::shared_ptr<engine::Waiter> waiter_;
  SharedMemory memory_;  // until join returns
  std::unique_ptr<shm::ShmFabric> shm_;
  tcp::TcpFabric tcp_;  // unused where there is shm_
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Runner> runner_;
  std::atomic<const engine::Engine*> running_{nullptr};  // for the service thread: all is made
  std::shared_ptr<Operations> operations_;               // shared with every Work
  std::shared_ptr<Attendant> attendant_;                 // shared with the service thread
  bootstrap::StateDoor* state_door_ = nullptr;           // of the service, which the job holds
  uint64_t told_as_ = 0;
  std::shared_ptr<Postman> postman_;     // too; none without shm_
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
  if (const auto doubt = contradiction(process_environment); doubt && !options.rank && !options.world)
    log::line(log::Level::warn, -1, "{}", *doubt);
  return create(*resolved);
}

Result<Communicator> Communicator::create(const Options& options) {
  auto complete_options = complete(options);
  if (!complete_options) return complete_options.error();
  const auto policy = policy_of(*complete_options);
  if (!policy) return policy.error();
  auto state = State::join(*complete_options, *policy);
  if (!state) return state.error();
  (*state)->set_home(complete_options->root);
  return Communicator(std::move(*state));
}

namespace {

Error moved_from() { return {ErrorCode::invalid_argument, "this communicator was moved from"}; }

// Completes a call with its options; packs its group, if it has one.
Result<std::unique_ptr<Group>> complete(engine::Call& call, const CallOptions& options,
                                        const std::optional<std::span<const Tensor>>& tensors,
                                        bool reproducible) {
  call.weight = options.weight;
  call.reproducible = options.reproducible.value_or(reproducible);
  if (!options.algorithm.empty() && options.algorithm != "auto") {
    call.algorithm = schedule::algorithm_named(options.algorithm);
    if (!call.algorithm || !engine::can_run(call, *call.algorithm))
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}: there is no algorithm \"{}\" for it", describe(call), options.algorithm)};
  }
  if (!tensors) return std::unique_ptr<Group>();
  auto group = Group::pack(*tensors, call.type);
  if (group) (*group)->become(call);
  return group;
}

}  // namespace

Result<void> Communicator::run(engine::Call call, const CallOptions& options, const Tensors& tensors) {
  if (!state_) return moved_from();
  auto group = complete(call, options, tensors, state_->reproducible());
  if (!group) return group.error();
  return state_->run(call, options, std::move(*group));
}

Result<Work> Communicator::submit(engine::Call call, const CallOptions& options, const Tensors& tensors) {
  if (!state_) return moved_from();
  auto group = complete(call, options, tensors, state_->reproducible());
  if (!group) return group.error();
  return state_->submit(call, options, std::move(*group));
}

Result<std::optional<Communicator>> Communicator::split(std::optional<uint32_t> color, int64_t key,
                                                        const CallOptions& options) {
  const auto exchange = [&](auto& all) {
    using Record = std::remove_reference_t<decltype(all[0])>;
    const auto* own = all.data() + rank();
    return all_gather(own, all.data(), all.size() * sizeof(Record), DataType::u8, options);
  };
  if (!state_) return moved_from();
  std::vector<Choice> choices(world());
  choices[rank()] = choice_of(color, key);
  if (auto done = exchange(choices); !done) return done.error();

  const Part part = color ? part_of(choices, rank()) : Part{};
  const bool leads = part.members.size() > 1 && part.rank == 0;
  Result<bootstrap::Meeting> meeting = bootstrap::Meeting{};
  if (leads) meeting = state_->meet();
  std::vector<Invitation> invitations(world());
  if (leads) invitations[rank()] = invitation_to(meeting);
  if (auto done = exchange(invitations); !done) return done.error();

  if (!color) return std::optional<Communicator>();
  const Rank leader = part.members[0];
  if (!leads && part.members.size() > 1) meeting = accept(invitations[leader], leader);
  if (!meeting) return meeting.error();
  auto state = state_->join_part(part, std::move(*meeting));
  if (!state) return state.error();
  return std::optional(Communicator(std::move(*state)));
}

Result<Communicator> Communicator::duplicate(const CallOptions& options) {
  auto all = split(0, 0, options);
  if (!all) return all.error();
  return std::move(**all);
}

Result<Communicator> Communicator::shrink(const CallOptions& options) {
  if (!state_) return moved_from();
  auto state = state_->shrink(options);
  if (!state) return state.error();
  return Communicator(std::move(*state));
}

std::vector<Rank> Communicator::parent_ranks() const {
  return state_ ? state_->parents() : std::vector<Rank>();
}

Result<Communicator> Communicator::grow(uint32_t newcomers, std::string_view root,
                                        const CallOptions& options) {
  if (!state_) return moved_from();
  const std::string where(root.empty() ? state_->home() : root);
  const auto own = growth_of(world(), newcomers, where);
  if (!own) return own.error();
  std::vector<Growth> all(world(), *own);
  if (auto done = all_gather(&all[rank()], all.data(), all.size() * sizeof(Growth), DataType::u8, options);
      !done)
    return done.error();
  if (auto same = same_growth(all); !same) return same.error();
  auto state = state_->grow(newcomers, where, options);
  if (!state) return state.error();
  return Communicator(std::move(*state));
}

Rank Communicator::rank() const noexcept { return state_ ? state_->rank() : 0; }
uint32_t Communicator::world() const noexcept { return state_ ? state_->world() : 0; }
std::string_view Communicator::transport() const noexcept { return state_ ? state_->transport() : "local"; }
std::string_view Communicator::last_algorithm() const noexcept {
  return state_ ? state_->algorithm() : std::string_view();
}
Counters Communicator::counters() const noexcept { return state_ ? state_->counters() : Counters(); }
void Communicator::abort() noexcept {
  if (state_) state_->abort();
}

}  // namespace rondo
