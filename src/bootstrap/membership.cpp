#include "bootstrap/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "bootstrap/person.hpp"
#include "bootstrap/process.hpp"

namespace rondo::bootstrap {
namespace {

constexpr milliseconds dial_pause{20};
// Between two looks at the failure of the job that the ranks of a meeting share.
constexpr milliseconds glance{50};

Transport transport_of(const Options& options) {
  if (options.transport == "tcp") return Transport::tcp;
  return options.transport == "shm" ? Transport::shm : Transport::automatic;
}

std::shared_ptr<StarSetup> make_setup(const Options& options, const Policy& policy,
                                      const std::shared_ptr<Service>& service, const Credentials& credentials,
                                      const Limits& limits, const Meeting& meeting,
                                      const std::optional<Error>& excuse) {
  if (*options.world == 1) return nullptr;
  auto root = parse_root(options.root);
  const auto ports = parse_ports(options.ports);
  const auto advertised = parse_advertised(options.advertise, *ports);
  const auto listen = parse_listen(options.listen);
  assert(root.ok() && ports.ok() && advertised.ok() && listen.ok());  // the options are complete
  return std::make_shared<StarSetup>(
      StarSetup{service, service->context(), std::move(*root), credentials, *options.rank, *options.world,
                *options.init_timeout, deadline_after(*options.init_timeout), limits,
                this_process(options.node), options.interfaces, *ports, *advertised, *listen, meeting,
                transport_of(options), policy, *options.heartbeat, excuse});
}

}  // namespace

Membership::Membership(const Options& options, const Policy& policy, const std::shared_ptr<Service>& service,
                       Handler& handler, const Limits& limits, const Meeting& meeting,
                       const std::optional<Error>& excuse)
    : rank_(*options.rank),
      world_(*options.world),
      timeout_(*options.init_timeout),
      context_(service->context()),
      credentials_{.secret = options.secret, .tls = options.tls.value_or(false)},
      limits_(limits),
      setup_(make_setup(options, policy, service, credentials_, limits, meeting, excuse)),
      handler_(&handler) {
  job_.policy = policy;  // until rank 0 says what counts
}

// ---- The user's threads.

Result<void> Membership::join() {
  if (!setup_) {
    job_.epoch = random_number();
    return {};
  }
  if (auto error = Service::cannot_be_waited_for("joining")) return *error;
  open_memory_door();
  const auto service = setup_->service.lock();
  const uint64_t lost = service->handlers_lost();
  auto done = joining_.get_future();
  asio::post(context_, [self = shared_from_this()] {
    self->star_ = self->rank_ == 0 ? make_hub(*self->setup_, self) : make_spoke(*self->setup_, self);
    self->star_->start();
  });
  const TimePoint give_up = deadline_after(timeout_ + service_grace);
  while (done.wait_for(glance) != std::future_status::ready) {
    if (const auto& failure = setup_->meeting.failure)
      if (auto error = failure()) return *error;
    if (service->handlers_lost() != lost)
      return Error{ErrorCode::system, fmt::format("rank {} could not join: {}", rank_, service->last_loss())};
    if (Clock::now() >= give_up)
      return Error{
          ErrorCode::timeout,
          "joining: the library's own thread does not run; does a callback of Work::on_end block it?"};
  }
  return done.get();
}

void Membership::leave() noexcept {
  {
    const std::lock_guard lock(handler_mutex_);
    handler_ = nullptr;
  }
  call_on(context_, [self = shared_from_this()] { self->close(); });
}

void Membership::connect(Rank peer, uint16_t lane) noexcept {
  unless_without_memory(
      [&] { asio::post(context_, [self = shared_from_this(), peer, lane] { self->open(peer, lane); }); });
}

void Membership::announce(const Error& error) noexcept {
  unless_without_memory([&] {
    asio::post(context_, [self = shared_from_this(), error] {
      if (!self->star_ || self->closed_ || std::exchange(self->failed_, true)) return;
      self->star_->send(failure_message(self->rank_, error));
    });
  });
}

Result<Meeting> Membership::meet() const {
  if (!setup_) return Error{ErrorCode::invalid_argument, "a job of one rank has nobody to meet"};
  return open_meeting(*setup_, listens_at_);
}

std::vector<uint32_t> Membership::nodes() const {
  std::map<std::pair<BootId, uint32_t>, uint32_t> numbers;
  std::vector<uint32_t> nodes;
  for (const Person& person : job_.persons)
    nodes.push_back(numbers.try_emplace({person.boot, person.node}, uint32_t(numbers.size())).first->second);
  return nodes;
}

std::string Membership::address() const {
  if (job_.listeners.empty() || job_.listeners[rank_].family == 0) return {};
  return to_text(from_wire(job_.listeners[rank_], scope_));
}

// ---- The service thread: joining and the control plane.

void Membership::joined(Welcome welcome, DataListener listener) {
  address_reason_ = std::move(listener.why);
  job_ = std::move(welcome);
  const BootId& here = job_.persons[rank_].boot;
  local_world_ = uint32_t(std::count_if(job_.persons.begin(), job_.persons.end(),
                                        [&](const Person& person) { return person.boot == here; }));
  watch_processes();
  open_door(std::move(listener.socket));
  agree();
}

void Membership::open_door(Descriptor listener) {
  listens_at_ = ip_of(local_address(listener.get()));
  if (listens_at_.is_v6()) scope_ = listens_at_.to_v6().scope_id();
  open_regroup();
  door_ = std::make_shared<Door>(context_, credentials_, Purpose::data, limits_, rank_);
  const std::weak_ptr<Membership> weak = shared_from_this();
  const auto admit = [weak](const Claim& claim) {
    const auto self = weak.lock();
    return self ? self->admit(claim) : Verdict::unknown_tag;
  };
  const auto entered = [weak](const Claim& claim, Socket socket) {
    const auto self = weak.lock();
    if (!self) return;
    if (Regroup::is_for(claim)) return self->regroup_->entered(claim, std::move(socket));
    self->settle({claim.rank, claim.lane}, release(std::move(socket)));
  };
  const auto exhausted = [weak](int error) {
    if (const auto self = weak.lock()) self->exhausted(error);
  };
  std::vector<Descriptor> listeners;
  listeners.push_back(std::move(listener));
  door_->open(std::move(listeners), {admit, entered, exhausted});
}

void Membership::watch_processes() {
  std::set<Rank> watched;
  if (const auto before = watched_by(rank_, job_.persons)) watched.insert(*before);
  if (is_other_process_here(rank_, 0, job_.persons)) watched.insert(0);
  for (const Rank peer : watched) watch(peer, [this, peer] { star_->ended(peer); });
}

bool Membership::watch(Rank peer, std::function<void()> ended) {
  auto made = Watch::start(context_, job_.persons[peer], [weak = weak_from_this(), ended = std::move(ended)] {
    const auto self = std::static_pointer_cast<Membership>(weak.lock());
    if (self && !self->closed_) ended();
  });
  if (!made) return false;
  watches_.push_back(std::move(made));
  return true;
}

// Rank 0 has left in order, and nobody tells any more who is lost: each rank looks after all of its machine, whose shared
// memory shows no end of a process. Who had closed it had left in order.
void Membership::watch_all() {
  for (Rank peer = 1; peer < world_; ++peer) {
    if (left_.contains(peer) || !is_other_process_here(rank_, peer, job_.persons)) continue;
    if (!watch(peer, [this, peer] { ended_unheard(peer); }) && !lives(job_.persons[peer].process))
      ended_unheard(peer);
  }
}

void Membership::ended_unheard(Rank peer) {
  bool in_order = true;
  tell([&](Handler& handler) { in_order = handler.has_left(peer); });
  if (in_order) return;
  failed(peer, {ErrorCode::peer_lost, peer,
                name(peer) + " has ended without leaving the job: it died or was killed", true});
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
    case Kind::report:
      if (const auto report = decode_report(message.body)) reported(message.from, *report);
      return;
    case Kind::ask:
      if (const auto key = decode_key(message.body)) send_report(Report::Reason::asked, *key);
      return;
    case Kind::summary:
      if (const auto summary = decode_summary(message.body)) summarise(*summary);
      return;
    case Kind::join:
    case Kind::welcome:
    case Kind::beat:
    case Kind::ended:
    case Kind::regroup:
      return;
  }
}

void Membership::failed(Rank from, const Failure& failure) {
  if (std::exchange(failed_, true)) return;
  const std::string text = failure.complete ? failure.text : name(from) + " reported: " + failure.text;
  const Error error{failure.code, text, failure.peer ? failure.peer : from};
  if (!join_finished_) return finish_join(error);
  tell([&](Handler& handler) { handler.failed(error); });
}

void Membership::left(Rank peer) {
  left_.insert(peer);
  if (peer == 0 && join_finished_) watch_all();
  if (!join_finished_) return left_early(peer);
  std::vector<Key> waiting;
  for (const auto& [key, link] : links_)
    if (key.first == peer && link.asked && !link.settled) waiting.push_back(key);
  for (const Key& key : waiting)
    settle(key, Error{ErrorCode::peer_lost, name(peer) + " has left the job", peer});
}

// It may have left because it has heard of a death, of which this rank will hear too.
void Membership::left_early(Rank peer) {
  later(context_, news_patience, [weak = weak_from_this(), peer] {
    const auto self = std::static_pointer_cast<Membership>(weak.lock());
    if (!self) return;
    self->finish_join(Error{ErrorCode::peer_lost, self->name(peer) + " left before the job had begun", peer});
  });
}

std::string Membership::name(Rank peer) const { return describe(peer, job_.persons[peer]); }

void Membership::close() noexcept {
  if (star_) {
    unless_without_memory([this] { star_->send({Kind::leave, rank_, everyone, {}}); });
    star_->close();
  }
  closed_ = true;
  close_door();
  if (exchange_) exchange_->close();
  if (agreement_timer_) agreement_timer_->cancel();
  questions_.clear();
  for (const auto& watch : watches_) watch->stop();
  for (auto& [key, link] : links_) {
    if (link.dial) link.dial->cancel();
    if (link.retry) link.retry->cancel();
  }
  links_.clear();
}

// ---- The service thread: data connections.

void Membership::open(Rank peer, uint16_t lane) {
  if (closed_) return;
  const Key key{peer, lane};
  if (peer == rank_ || peer >= world_ || Regroup::is_for({0, rank_, lane})) {
    const Error error{
        ErrorCode::invalid_argument,
        fmt::format("rank {} of {} cannot connect to rank {} by lane {}", rank_, world_, peer, lane)};
    return tell([&](Handler& handler) { handler.connected(peer, lane, error); });
  }
  Link& link = links_[key];
  if (link.settled || std::exchange(link.asked, true)) return;
  if (left_.contains(peer))
    return settle(key, Error{ErrorCode::peer_lost, name(peer) + " has left the job", peer});
  if (rank_ > peer) return star_->send({Kind::dial, rank_, peer, encode_lane(lane)});
  dial_anew(key);
}

void Membership::dial_anew(const Key& key) {
  links_[key].deadline = deadline_after(timeout_);
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

// A rank that stays silent may be stopped: it is dialled again until this job has failed. Whether it is dead is for the
// control plane to find out, and how long to wait for it for whoever wants the connection: their errors end the job.
// A dial that was cut off is made again, too: a flood of strangers may have pushed it out of the door.
void Membership::dialled(const Key& key, Socket socket, const std::optional<Dial::Failure>& failure) {
  Link& link = links_[key];
  if (link.settled) return;
  const auto& [peer, lane] = key;
  if (!failure) return settle(key, release(std::move(socket)));
  if (failure->silent && !failed_) {
    if (!std::exchange(link.told, true))
      log::line(log::Level::warn, int(rank_), "no answer yet from {} at {}", name(peer),
                to_text(from_wire(job_.listeners[peer], scope_)));
    return dial_anew(key);
  }
  const bool out_of_time = Clock::now() >= link.deadline;
  if (failure->nobody_listens || out_of_time || failure->error.code != ErrorCode::peer_lost) {
    const ErrorCode code = failure->nobody_listens ? ErrorCode::peer_lost
                           : out_of_time           ? ErrorCode::timeout
                                                   : failure->error.code;
    return settle(
        key, Error{code,
                   fmt::format("no connection from rank {} to {} at {}: {}{}", rank_, name(peer),
                               to_text(from_wire(job_.listeners[peer], scope_)), failure->error.message,
                               failure->nobody_listens ? "; the rank is gone, or is not where it says" : ""),
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
  if (Regroup::is_for(claim)) return regroup_->admit(claim);
  const bool known =
      !closed_ && claim.tag == job_.epoch && claim.rank < rank_ && !links_[{claim.rank, claim.lane}].settled;
  return known ? Verdict::welcome : Verdict::unknown_tag;
}

// Only what this rank waits for fails: the others may come when descriptors are free again.
void Membership::exhausted(int error) {
  std::vector<Key> waiting;
  for (const auto& [key, link] : links_)
    if (key.first < rank_ && link.asked && !link.settled) waiting.push_back(key);
  for (const Key& key : waiting)
    settle(key,
           Error{ErrorCode::system,
                 fmt::format(
                     "rank {} has run out of file descriptors and cannot accept the connection of {}: {}",
                     rank_, name(key.first), descriptor_limit(error)),
                 rank_});
}

void Membership::settle(const Key& key, Result<Stream> stream) {
  Link& link = links_[key];
  if (closed_ || std::exchange(link.settled, true)) return;
  if (link.dial) link.dial->cancel();
  link.dial = nullptr;
  link.retry = nullptr;
  tell([&](Handler& handler) { handler.connected(key.first, key.second, std::move(stream)); });
}

}  // namespace rondo::bootstrap
