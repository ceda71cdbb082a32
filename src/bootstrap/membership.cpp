#include "bootstrap/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>

#include "base/log.hpp"
#include "bootstrap/person.hpp"

namespace rondo::bootstrap {
namespace {

constexpr milliseconds dial_pause{20};
// Beyond the deadline that the service thread itself keeps.
constexpr milliseconds join_grace{2000};
// Between two looks at the failure of the job that the ranks of a meeting share.
constexpr milliseconds glance{50};
// For the exchange of memory; less when the deadline is near, so that everybody can still be told.
constexpr milliseconds exchange_patience{10'000};
// Rank 0, not this one, says at the deadline who is missing.
constexpr milliseconds agreement_grace{400};

Transport transport_of(const Options& options) {
  if (options.transport == "tcp") return Transport::tcp;
  return options.transport == "shm" ? Transport::shm : Transport::automatic;
}

std::vector<uint32_t> one_each(size_t world) {
  std::vector<uint32_t> groups(world);
  for (size_t rank = 0; rank < world; ++rank) groups[rank] = uint32_t(rank);
  return groups;
}

std::shared_ptr<StarSetup> make_setup(const Options& options, const std::shared_ptr<Service>& service,
                                      const Credentials& credentials, const Limits& limits,
                                      const Meeting& meeting) {
  if (*options.world == 1) return nullptr;
  auto root = parse_root(options.root);
  const auto ports = parse_ports(options.ports);
  assert(root.ok() && ports.ok());  // the options are complete
  return std::make_shared<StarSetup>(
      StarSetup{service, service->context(), std::move(*root), credentials, *options.rank, *options.world,
                *options.init_timeout, deadline_after(*options.init_timeout), limits, this_process(),
                options.interfaces, *ports, meeting, transport_of(options), options.algorithm});
}

}  // namespace

Membership::Membership(const Options& options, const std::shared_ptr<Service>& service, Handler& handler,
                       const Limits& limits, const Meeting& meeting)
    : rank_(*options.rank),
      world_(*options.world),
      timeout_(*options.init_timeout),
      context_(service->context()),
      credentials_{options.secret},
      limits_(limits),
      setup_(make_setup(options, service, credentials_, limits, meeting)),
      handler_(&handler) {
  job_.algorithm = options.algorithm;  // until rank 0 says what counts
}

// ---- The user's threads.

Result<void> Membership::join() {
  if (!setup_) {
    job_.epoch = random_number();
    return {};
  }
  open_memory_door();
  auto done = joining_.get_future();
  asio::post(context_, [self = shared_from_this()] {
    self->star_ = self->rank_ == 0 ? make_hub(*self->setup_, self) : make_spoke(*self->setup_, self);
    self->star_->start();
  });
  const TimePoint give_up = deadline_after(timeout_ + join_grace);
  while (done.wait_for(glance) != std::future_status::ready) {
    if (const auto& failure = setup_->meeting.failure)
      if (auto error = failure()) return *error;
    if (Clock::now() >= give_up)
      return Error{ErrorCode::timeout, "joining: the service thread does not run; does a Handler block it?"};
  }
  return done.get();
}

void Membership::leave(milliseconds patience) noexcept {
  {
    const std::lock_guard lock(handler_mutex_);
    handler_ = nullptr;
  }
  const auto closed = std::make_shared<std::promise<void>>();
  asio::post(context_, [self = shared_from_this(), closed] {
    self->close();
    closed->set_value();
  });
  closed->get_future().wait_for(patience);
}

void Membership::connect(Rank peer, uint16_t lane) noexcept {
  asio::post(context_, [self = shared_from_this(), peer, lane] { self->open(peer, lane); });
}

void Membership::announce(const Error& error) noexcept {
  asio::post(context_, [self = shared_from_this(), error] {
    if (!self->star_ || self->closed_ || std::exchange(self->failed_, true)) return;
    self->star_->send(failure_message(self->rank_, error));
  });
}

Result<Meeting> Membership::meet() const {
  if (!setup_) return Error{ErrorCode::invalid_argument, "a job of one rank has nobody to meet"};
  return open_meeting(*setup_, ip_of(from_wire(job_.listeners[rank_], scope_)));
}

// ---- The service thread: joining and the control plane.

void Membership::joined(Welcome welcome, Descriptor listener) {
  job_ = std::move(welcome);
  const BootId& here = job_.persons[rank_].boot;
  local_world_ = uint32_t(std::count_if(job_.persons.begin(), job_.persons.end(),
                                        [&](const Person& person) { return person.boot == here; }));
  if (listener) {
    const auto ip = ip_of(local_address(listener.get()));
    if (ip.is_v6()) scope_ = ip.to_v6().scope_id();
    door_ = std::make_shared<Door>(context_, credentials_, Purpose::data, limits_, rank_);
    const std::weak_ptr<Membership> weak = shared_from_this();
    const auto admit = [weak](const Claim& claim) {
      const auto self = weak.lock();
      return self ? self->admit(claim) : Verdict::unknown_tag;
    };
    const auto entered = [weak](const Claim& claim, Socket socket) {
      asio::error_code error;
      if (const auto self = weak.lock())
        self->settle({claim.rank, claim.lane}, Descriptor(socket.release(error)));
    };
    std::vector<Descriptor> listeners;
    listeners.push_back(std::move(listener));
    door_->open(std::move(listeners), {admit, entered});
  }
  agree();
}

void Membership::join_failed(const Error& error) { finish_join(error); }

void Membership::deliver(const Message& message) {
  if (closed_ || message.from >= world_) return;
  switch (message.kind) {
    case Kind::failed:
      if (const auto failure = decode_failure(message.body)) failed(message.from, *failure);
      return;
    case Kind::leave:
      return left(message.from);
    case Kind::dial:
      if (const auto lane = decode_lane(message.body); lane && message.from > rank_)
        open(message.from, *lane);
      return;
    case Kind::shared:
      if (const auto outcome = decode_shared(message.body)) shared(message.from, *outcome);
      return;
    case Kind::groups:
      if (const auto groups = decode_groups(message.body); groups && groups->group.size() == world_)
        conclude(*groups);
      return;
    case Kind::join:
    case Kind::welcome:
      return;
  }
}

// A failure in which the sender is its own subject was written by the hub about a rank that was lost.
void Membership::failed(Rank from, const Failure& failure) {
  if (std::exchange(failed_, true)) return;
  const bool about_itself = failure.code == ErrorCode::peer_lost && failure.peer == from;
  const std::string text =
      about_itself ? failure.text
                   : fmt::format("{} reported: {}", describe(from, job_.persons[from]), failure.text);
  const Error error{failure.code, text, failure.peer ? failure.peer : from};
  if (!join_finished_) return finish_join(error);
  tell([&](Handler& handler) { handler.failed(error); });
}

void Membership::left(Rank peer) {
  left_.insert(peer);
  if (!join_finished_)
    return finish_join(Error{ErrorCode::peer_lost, name(peer) + " left before the job had begun", peer});
  std::vector<Key> waiting;
  for (const auto& [key, link] : links_)
    if (key.first == peer && link.asked && !link.settled) waiting.push_back(key);
  for (const Key& key : waiting)
    settle(key, Error{ErrorCode::peer_lost, name(peer) + " has left the job", peer});
}

std::string Membership::name(Rank peer) const { return describe(peer, job_.persons[peer]); }

void Membership::close() noexcept {
  if (star_) {
    star_->send({Kind::leave, rank_, everyone, {}});
    star_->close();
  }
  closed_ = true;
  if (door_) door_->close();
  if (exchange_) exchange_->close();
  if (agreement_timer_) agreement_timer_->cancel();
  for (auto& [key, link] : links_) {
    if (link.dial) link.dial->cancel();
    if (link.retry) link.retry->cancel();
  }
  links_.clear();
}

// ---- The service thread: what carries the data.

// Listens before this rank is known to its peers, so that none comes too early.
void Membership::open_memory_door() {
  if (handler_->sharing() == nullptr || (rank_ == 0 && setup_->transport == Transport::tcp)) return;
  DoorName name;
  fill_random(name);
  auto listener = listen_on(door_address(name));
  if (!listener) return log::line(log::Level::info, int(rank_), "{}", listener.error().message);
  memory_listener_ = std::move(*listener);
  setup_->person.door = name;
}

// Every rank concludes the same from the welcome, or they try and rank 0 concludes for all.
void Membership::agree() {
  if (setup_->transport != job_.transport && setup_->transport != Transport::automatic)
    log::line(log::Level::info, int(rank_), "RONDO_TRANSPORT of rank 0 counts, not that of this rank");
  if (setup_->algorithm != job_.algorithm && setup_->algorithm != "auto")
    log::line(log::Level::info, int(rank_), "RONDO_ALGORITHM of rank 0 counts, not that of this rank");
  if (const auto groups = not_to_be_tried()) return conclude(*groups);
  reports_.resize(world_);
  const TimePoint deadline = deadline_after(milliseconds(job_.remaining_ms));
  agreement_timer_ = std::make_shared<asio::steady_timer>(context_);
  agreement_timer_->expires_at(deadline + (rank_ == 0 ? milliseconds(0) : agreement_grace));
  agreement_timer_->async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->join_finished_) self->agreement_missing();
  });
  exchange();
}

std::optional<Groups> Membership::not_to_be_tried() const {
  if (job_.transport == Transport::tcp) return Groups{one_each(world_), 0, {}};
  const BootId& first = job_.persons[0].boot;
  for (Rank rank = 0; rank < world_; ++rank) {
    if (first == BootId{} || job_.persons[rank].boot != first)
      return Groups{one_each(world_), rank, name(rank) + " is not on rank 0's machine"};
    if (job_.persons[rank].door == DoorName{})
      return Groups{one_each(world_), rank, name(rank) + " has no memory to share"};
  }
  return std::nullopt;
}

void Membership::exchange() {
  exchange_ = std::make_shared<Exchange>(context_, credentials_, limits_, rank_, job_);
  const std::weak_ptr<Membership> weak = shared_from_this();
  const auto with = [weak](const Exchange::Use& use) -> Result<void> {
    const auto self = weak.lock();
    return self ? self->with_sharing(use) : Error{ErrorCode::aborted, "this rank is leaving"};
  };
  const auto report = [weak](const Shared& outcome) {
    const auto self = weak.lock();
    if (!self) return;
    if (self->rank_ == 0) return self->shared(0, outcome);
    self->star_->send({Kind::shared, self->rank_, 0, encode(outcome)});
  };
  const milliseconds patience = std::min(exchange_patience, milliseconds(job_.remaining_ms) * 3 / 4);
  exchange_->start(std::move(memory_listener_), deadline_after(patience), {with, report});
}

Result<void> Membership::with_sharing(const Exchange::Use& use) {
  const std::lock_guard lock(handler_mutex_);
  Sharing* sharing = handler_ != nullptr ? handler_->sharing() : nullptr;
  if (sharing == nullptr) return Error{ErrorCode::aborted, "this rank is leaving"};
  return use(*sharing);
}

// Rank 0: one rank's report. What somebody has seen himself decides at once; consequences wait for it.
void Membership::shared(Rank from, const Shared& outcome) {
  if (rank_ != 0 || join_finished_ || reports_.empty()) return;
  reports_[from] = outcome;
  const auto bad = [](const auto& report) { return report && !report->ok; };
  const bool all = std::ranges::all_of(reports_, [](const auto& report) { return report.has_value(); });
  const bool seen = !outcome.ok && !outcome.consequence;
  if (!all && !seen) return;
  Groups groups{std::vector<uint32_t>(world_, 0), 0, {}};
  const auto failure = std::ranges::find_if(reports_, bad);
  if (const Shared* why = seen ? &outcome : failure != reports_.end() ? &**failure : nullptr)
    groups = {one_each(world_), why->peer, why->why};
  star_->send({Kind::groups, 0, everyone, encode(groups)});
  conclude(groups);
}

void Membership::agreement_missing() {
  Error error{ErrorCode::timeout, "rank 0 did not say in time what carries the data", Rank(0)};
  if (rank_ == 0) {
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < world_; ++rank)
      if (!reports_[rank]) missing.push_back(rank);
    error = {ErrorCode::timeout,
             fmt::format("{} did not exchange shared memory with the others within {}",
                         list_of(missing, world_), in_seconds(uint64_t(timeout_.count()))),
             missing.front()};
  }
  if (!std::exchange(failed_, true)) star_->send(failure_message(rank_, error));
  finish_join(error);
}

void Membership::conclude(const Groups& groups) {
  if (join_finished_) return;
  if (exchange_) exchange_->close();
  shares_memory_ = std::ranges::all_of(groups.group, [](uint32_t group) { return group == 0; });
  const auto end = [this](Sharing& sharing) {
    sharing.end(shares_memory_);
    return Result<void>();
  };
  [[maybe_unused]] const auto ended = with_sharing(end);
  memory_listener_ = Descriptor();
  if (!shares_memory_ && job_.transport == Transport::shm)
    return finish_join(Error{ErrorCode::system,
                             "RONDO_TRANSPORT=shm, but the ranks cannot share memory: " + groups.why,
                             groups.peer});
  if (rank_ == 0 && shares_memory_)
    log::line(log::Level::info, 0, "transport shm: all {} ranks share memory", world_);
  else if (rank_ == 0 && job_.transport == Transport::automatic)
    log::line(log::Level::info, 0, "transport tcp: the ranks cannot share memory: {}", groups.why);
  finish_join({});
}

void Membership::finish_join(Result<void> outcome) {
  if (std::exchange(join_finished_, true)) return;
  if (!outcome) closed_ = true;
  if (exchange_) exchange_->close();
  if (agreement_timer_) agreement_timer_->cancel();
  joining_.set_value(std::move(outcome));
}

// ---- The service thread: data connections.

void Membership::open(Rank peer, uint16_t lane) {
  if (closed_) return;
  const Key key{peer, lane};
  if (peer == rank_ || peer >= world_) {
    const Error error{ErrorCode::invalid_argument,
                      fmt::format("rank {} of {} cannot connect to rank {}", rank_, world_, peer)};
    return tell([&](Handler& handler) { handler.connected(peer, lane, error); });
  }
  Link& link = links_[key];
  if (link.settled || std::exchange(link.asked, true)) return;
  if (left_.contains(peer))
    return settle(key, Error{ErrorCode::peer_lost, name(peer) + " has left the job", peer});
  if (rank_ > peer) return star_->send({Kind::dial, rank_, peer, encode_lane(lane)});
  link.deadline = deadline_after(timeout_);
  dial(key);
}

void Membership::dial(const Key& key) {
  const auto& [peer, lane] = key;
  links_[key].dial =
      Dial::start(context_, from_wire(job_.listeners[peer], scope_), credentials_, Purpose::data,
                  {job_.epoch, rank_, lane}, links_[key].deadline,
                  [weak = weak_from_this(), key](Socket socket, const std::optional<Dial::Failure>& failure) {
                    const auto self = std::static_pointer_cast<Membership>(weak.lock());
                    if (self && !self->closed_) self->dialled(key, std::move(socket), failure);
                  });
}

// A dial that ended without an answer is made again: a flood of strangers may have pushed it out of the door.
void Membership::dialled(const Key& key, Socket socket, const std::optional<Dial::Failure>& failure) {
  Link& link = links_[key];
  if (link.settled) return;
  const auto& [peer, lane] = key;
  if (!failure) {
    asio::error_code error;
    return settle(key, Descriptor(socket.release(error)));
  }
  const bool out_of_time = Clock::now() >= link.deadline;
  if (failure->nobody_listens || out_of_time || failure->error.code != ErrorCode::peer_lost) {
    const ErrorCode code = failure->nobody_listens ? ErrorCode::peer_lost
                           : out_of_time           ? ErrorCode::timeout
                                                   : failure->error.code;
    return settle(key,
                  Error{code,
                        fmt::format("no connection from rank {} to {}: {}{}", rank_, name(peer),
                                    failure->error.message, failure->nobody_listens ? "; it is gone" : ""),
                        peer});
  }
  link.retry = std::make_shared<asio::steady_timer>(context_, dial_pause);
  link.retry->async_wait([weak = weak_from_this(), key](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->closed_ && !self->links_[key].settled) self->dial(key);
  });
}

// Of another job, from a rank that must not dial this one, or for a lane that is connected already.
Verdict Membership::admit(const Claim& claim) {
  const bool known =
      claim.tag == job_.epoch && claim.rank < rank_ && !links_[{claim.rank, claim.lane}].settled;
  return known ? Verdict::welcome : Verdict::unknown_tag;
}

void Membership::settle(const Key& key, Result<Descriptor> socket) {
  Link& link = links_[key];
  if (closed_ || std::exchange(link.settled, true)) return;
  if (link.dial) link.dial->cancel();
  link.dial = nullptr;
  link.retry = nullptr;
  tell([&](Handler& handler) { handler.connected(key.first, key.second, std::move(socket)); });
}

}  // namespace rondo::bootstrap
