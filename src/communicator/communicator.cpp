#include "rondo/communicator.hpp"

#include <fmt/format.h>

#include "base/cores.hpp"
#include "base/environment.hpp"
#include "base/launcher.hpp"
#include "base/log.hpp"
#include "communicator/growth.hpp"
#include "communicator/state.hpp"
#include "engine/selection.hpp"
#include "schedule/catalogue.hpp"

namespace rondo {
namespace {

constexpr std::chrono::seconds grown_grace{5};
static_assert(engine::Tuning::longest_text <= bootstrap::longest_table);

// What this rank's options say; only rank 0's table counts, so the others' need not be there.
Result<bootstrap::Policy> policy_of(const Options& options) {
  bootstrap::Policy policy{
      options.algorithm, options.reproducible.value_or(false), {}, uint32_t(usable_cores())};
  if (options.tuning.empty() || options.rank != 0u) return policy;
  const auto tuning = engine::read_tuning(options.tuning);
  if (!tuning) return tuning.error();
  policy.table = tuning->text();
  return policy;
}

std::optional<std::string> nothing_set(const char*) { return std::nullopt; }

}  // namespace

Communicator::Communicator(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  const Communicator before(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}
// A child of fork() has none of the library's threads, and shares memory and connections with its parent, to
// which its end would look like the parent's: it leaves all of that alone.
Communicator::~Communicator() {
  if (state_ && !state_->is_of_this_process()) [[maybe_unused]]
    State* const left_alone = state_.release();
}

Result<Communicator> Communicator::from_environment(const Options& options) {
  const auto level = log_level(process_environment);
  if (!level) return State::declined(level.error(), options, process_environment);
  log::set_level(*level);
  auto resolved = resolve(options, process_environment);
  if (!resolved) return State::declined(resolved.error(), options, process_environment);
  if (const auto doubt = contradiction(process_environment); doubt && !options.rank && !options.world)
    log::line(log::Level::warn, -1, "{}", *doubt);
  return create(*resolved);
}

Result<Communicator> Communicator::create(const Options& options) {
  auto complete_options = complete(options);
  if (!complete_options) return State::declined(complete_options.error(), options, nothing_set);
  const auto policy = policy_of(*complete_options);
  if (!policy) return State::declined(policy.error(), *complete_options, nothing_set);
  auto state = State::join(*complete_options, *policy);
  if (!state) return state.error();
  return Communicator(std::move(*state));
}

namespace {

Error moved_from() { return {ErrorCode::invalid_argument, "this communicator was moved from"}; }

// Packs the group of a call, if it has one, and completes the call with its options.
Result<std::unique_ptr<Group>> complete(engine::Call& call, const CallOptions& options,
                                        const std::optional<std::span<const Tensor>>& tensors,
                                        bool reproducible) {
  std::unique_ptr<Group> group;
  if (tensors) {
    auto packed = Group::pack(*tensors, call.type);
    if (!packed) return packed.error();
    group = std::move(*packed);
    group->become(call);
  }
  if (options.timeout && options.timeout->count() <= 0)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: a timeout of {} ms is none; it must be above 0", describe(call),
                             options.timeout->count())};
  call.weight = options.weight;
  call.tag = options.tag;
  call.reproducible = options.reproducible.value_or(reproducible);
  if (!options.algorithm.empty() && options.algorithm != "auto") {
    call.algorithm = schedule::algorithm_named(options.algorithm);
    if (!call.algorithm || schedule::find(call.operation, *call.algorithm) == nullptr)
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}: there is no algorithm \"{}\" for it", describe(call), options.algorithm)};
    if (!engine::can_run(call, *call.algorithm))
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("{}: the algorithm \"{}\" cannot do what it asks for ({})", describe(call),
                      options.algorithm, is_weighted(call.reduction) ? "weights" : "reproducible sums")};
  }
  return group;
}

// Of one record of each rank, in place.
template <class Record>
engine::Call exchange_of(engine::PartOf caller, std::vector<Record>& all, Rank rank) {
  engine::Call call{.operation = schedule::Operation::all_gather, .part_of = caller, .type = DataType::u8};
  call.count = all.size() * sizeof(Record);
  call.input = reinterpret_cast<const std::byte*>(&all[rank]);
  call.output = reinterpret_cast<std::byte*>(all.data());
  return call;
}

engine::Call minimum_in_grow(int32_t& value) {
  engine::Call call{.operation = schedule::Operation::all_reduce, .part_of = engine::PartOf::grow};
  call.type = DataType::i32;
  call.reduction = Reduction::min;
  call.count = 1;
  call.input = call.output = reinterpret_cast<std::byte*>(&value);
  return call;
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
  return split_as(engine::PartOf::split, color, key, options);
}

Result<std::optional<Communicator>> Communicator::split_as(engine::PartOf caller,
                                                           std::optional<uint32_t> color, int64_t key,
                                                           const CallOptions& options) {
  const auto exchange = [&](auto& all) { return run(exchange_of(caller, all, rank()), options); };
  if (!state_) return moved_from();
  if (auto error =
          bootstrap::Service::cannot_be_waited_for(caller == engine::PartOf::split ? "split" : "duplicate"))
    return *error;
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
  auto all = split_as(engine::PartOf::duplicate, 0, 0, options);
  if (!all) return all.error();
  return std::move(**all);
}

Result<Communicator> Communicator::shrink(const CallOptions& options) {
  if (!state_) return moved_from();
  if (auto error = bootstrap::Service::cannot_be_waited_for("shrink")) return *error;
  auto state = state_->shrink(options);
  if (!state) return state.error();
  return Communicator(std::move(*state));
}

// All or none: the ranks join with the newcomers, and then tell each other whether they have. Where a rank is lost in
// that moment some may have learned that all have, and gone on, and some not: shrink finds out for those.
Result<Communicator> Communicator::grow(uint32_t newcomers, std::string_view root,
                                        const CallOptions& options) {
  if (!state_) return moved_from();
  if (auto error = bootstrap::Service::cannot_be_waited_for("grow")) return *error;
  const std::string where(root.empty() ? state_->home() : root);
  const auto own = growth_of(world(), newcomers, where);
  if (!own) return own.error();
  std::vector<Growth> all(world(), *own);
  const CallOptions limit{.timeout = options.timeout};
  if (auto done = run(exchange_of(engine::PartOf::grow, all, rank()), limit); !done) return done.error();
  if (auto same = same_growth(all); !same) return same.error();

  const auto patience = options.timeout.value_or(state_->init_timeout());
  auto next = state_->join_grown(newcomers, where, patience);
  int32_t all_joined = next.ok();
  // Others may be waiting in vain when this one has failed.
  if (auto told = run(minimum_in_grow(all_joined), {.timeout = patience + grown_grace}); !told) {
    if (next) state_->doubt(std::move(*next));
    return told.error();
  }
  if (!next) return next.error();
  if (all_joined == 0)
    return Error{ErrorCode::peer_lost,
                 fmt::format("rank {} of {}, grow: another rank could not join", rank(), world())};
  return Communicator(state_->confirm(std::move(*next)));
}

std::vector<Rank> Communicator::parent_ranks() const {
  return state_ ? state_->parents() : std::vector<Rank>();
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
