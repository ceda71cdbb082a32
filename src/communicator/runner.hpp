// Runs operations on the engine, and turns what goes wrong into the communicator's failure: every rank is
// told, the first caller gets the error, later ones `aborted`.
#pragma once
#include "bootstrap/job.hpp"
#include "communicator/attendant.hpp"
#include "communicator/operations.hpp"
#include "engine/engine.hpp"
#include "transport/faulty/injector.hpp"

namespace rondo {

class Runner final : public Driver {
 public:
  /// All outlive it.
  struct Parts {
    engine::Engine& engine;
    engine::Failure& failure;
    engine::Waiter& waiter;
    Fabric& fabric;
    bootstrap::Job& job;
    Attendant& attendant;
    faulty::Injector* injector = nullptr;  // where faults are configured
  };
  /// Before the first operation.
  void start(const Parts& parts) { parts_.emplace(parts); }

  /// Any thread: fails the communicator here and on every rank. The driver, if there is one, finds the error
  /// word set.
  void spread(const Error& error) noexcept;

  void begin(Operation& operation) override;
  engine::Progress advance(Operation& operation) override;
  TimePoint wake_at() const override;
  void sleep(TimePoint until) override { parts_->waiter.sleep(until); }
  Error too_late(const Operation& operation) override;
  void ring() override { parts_->waiter.ring(); }
  bool call_service() noexcept override { return parts_->attendant.call(); }

 private:
  engine::Progress pass(Operation& operation);
  engine::Progress await_verdict(Operation& operation);
  Error fail(Error error);
  Error told();

  std::optional<Parts> parts_;
  // The driver's.
  TimePoint deadline_, verdict_by_;
  std::optional<Error> lost_;  // a peer is lost, and the control plane has not said yet who is the cause
  bool told_ = false;          // a caller has been given the failure
};

}  // namespace rondo
