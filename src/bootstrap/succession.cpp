// The part of Membership that looks beyond its job: who of its ranks is left for another one, and the door that
// tells those who come late.
#include <future>

#include "bootstrap/membership.hpp"

namespace rondo::bootstrap {

// ---- The user's threads.

Result<Regrouping> Membership::regroup(uint64_t held, TimePoint deadline) {
  const auto outcome = std::make_shared<std::promise<Result<Regrouping>>>();
  auto future = outcome->get_future();
  asio::post(context_, [self = shared_from_this(), outcome, held, deadline] {
    if (!self->regroup_ || self->closed_) {
      outcome->set_value(Error{ErrorCode::aborted, "this communicator is being destroyed"});
      return;
    }
    self->regroup_->call(held, deadline,
                         [outcome](Result<Regrouping> result) { outcome->set_value(std::move(result)); });
  });
  if (future.wait_until(std::max(deadline, Clock::now()) + service_grace) != std::future_status::ready)
    return Error{ErrorCode::timeout, "shrink: the service thread does not run; does a handler block it?"};
  return future.get();
}

// Held by user's threads, as the service is: the service thread must not be the one to end itself.
class Membership::KeptDoor : public FormerJob {
 public:
  KeptDoor(std::shared_ptr<Membership> membership, std::shared_ptr<Service> service)
      : service_(std::move(service)), membership_(std::move(membership)) {}
  ~KeptDoor() override {
    call_on(membership_->context_, [membership = membership_] {
      if (membership->closed_) membership->close_door();
    });
  }
  void succeeded_by(uint64_t epoch) noexcept override {
    call_on(membership_->context_, [membership = membership_, epoch] {
      if (membership->regroup_) membership->regroup_->go_on(epoch);
    });
  }

 private:
  const std::shared_ptr<Service> service_;
  const std::shared_ptr<Membership> membership_;
};

std::shared_ptr<FormerJob> Membership::keep_door(std::shared_ptr<Service> service) {
  auto kept = std::make_shared<KeptDoor>(shared_from_this(), std::move(service));
  const std::lock_guard lock(handler_mutex_);
  door_kept_ = kept;
  return kept;
}

// ---- The service thread.

void Membership::open_regroup() {
  Regroup::Setup setup{context_, credentials_, job_.epoch, rank_, job_.persons, {}, {}};
  for (const DataAddress& address : job_.listeners) setup.doors.push_back(from_wire(address, scope_));
  setup.meet = [weak = weak_from_this()]() -> Result<Meeting> {
    const auto self = weak.lock();
    return self ? self->meet() : Error{ErrorCode::aborted, "this communicator is being destroyed"};
  };
  regroup_ = std::make_shared<Regroup>(std::move(setup));
}

// Not while a successor keeps it.
void Membership::close_door() noexcept {
  if (!door_) return;
  {
    const std::lock_guard lock(handler_mutex_);
    if (!door_kept_.expired()) return;
  }
  door_->close();
  regroup_->close();
}

}  // namespace rondo::bootstrap
