#include "bootstrap/job.hpp"

#include <future>
#include <mutex>

#include "bootstrap/membership.hpp"
#include "bootstrap/person.hpp"

namespace rondo::bootstrap {
namespace {

class JoinedJob : public Job {
 public:
  JoinedJob(std::shared_ptr<Service> service, std::shared_ptr<Membership> membership)
      : service_(std::move(service)), membership_(std::move(membership)) {}
  ~JoinedJob() override { membership_->leave(); }

  Rank rank() const noexcept override { return membership_->rank(); }
  uint32_t world() const noexcept override { return membership_->world(); }
  uint32_t local_world() const noexcept override { return membership_->local_world(); }
  std::vector<uint32_t> nodes() const override { return membership_->nodes(); }
  const Policy& policy() const noexcept override { return membership_->policy(); }
  bool shares_memory() const noexcept override { return membership_->shares_memory(); }
  std::string transport_reason() const override { return membership_->transport_reason(); }
  std::string address() const override { return membership_->address(); }
  std::string address_reason() const override { return membership_->address_reason(); }
  uint64_t epoch() const noexcept override { return membership_->epoch(); }
  void connect(Rank peer, uint16_t lane) noexcept override { membership_->connect(peer, lane); }
  void announce(const Error& error) noexcept override { membership_->announce(error); }
  void report(Report::Reason reason, const CallKey& key) noexcept override {
    membership_->report(reason, key);
  }
  Result<Meeting> meet() const override { return membership_->meet(); }
  Result<Regrouping> regroup(uint64_t held, TimePoint deadline) override {
    return membership_->regroup(held, deadline);
  }
  std::shared_ptr<FormerJob> keep_door() override { return membership_->keep_door(service_); }

 private:
  const std::shared_ptr<Service> service_;
  const std::shared_ptr<Membership> membership_;
};

// Who declines has no use for what a job tells its owner.
class Nobody : public Handler {
  void connected(Rank, uint16_t, Result<Stream>) noexcept override {}
  void failed(const Error&) noexcept override {}
};

}  // namespace

bool Job::decline(const Options& options, const Error& why, const std::shared_ptr<Service>& service) {
  Nobody nobody;
  const auto membership =
      std::make_shared<Membership>(options, Policy{}, service, nobody, Limits{}, Meeting{}, why);
  const auto declined = membership->join();
  membership->leave();
  return !declined && declined.error().message.ends_with(why.message);
}

Result<std::unique_ptr<Job>> Job::join(const Options& options, const Policy& policy,
                                       std::shared_ptr<Service> service, Handler& handler,
                                       const Limits& limits, const Meeting& meeting) {
  const auto membership = std::make_shared<Membership>(options, policy, service, handler, limits, meeting);
  if (auto joined = membership->join(); !joined) {
    membership->leave();
    return joined.error();
  }
  return std::unique_ptr<Job>(new JoinedJob(std::move(service), membership));
}

}  // namespace rondo::bootstrap
