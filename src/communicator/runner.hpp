// Runs operations on the engine, and turns what goes wrong into the communicator's failure: every rank is
// told, the first caller gets the error, later ones `aborted`.
//
// What one rank sees of a failure is seldom its cause, so before it is reported the control plane is asked:
//
//   nothing moves for a while    report `quiet`; if the ranks disagree, the job's failure ends the operation
//   a link broke                 wait a moment for the failure that says which rank died
//   a header does not fit        report `ends`, and wait for the failure that says which rank is the odd one;
//                                if all call the same, report what the two ranks of the header exchange in it
//   the deadline passed          report `ends`, and wait for the summary of whom everybody waits for
#pragma once
#include <mutex>

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

  /// Any thread: the answer to a report of `ends`.
  void summarised(const bootstrap::Summary& summary);

  void begin(Operation& operation) override;
  engine::Progress advance(Operation& operation) override;
  TimePoint wake_at() const override;
  void sleep(TimePoint until) override { parts_->waiter.sleep(until); }
  Error too_late(const Operation& operation) override;
  void ring() override { parts_->waiter.ring(); }
  bool call_service() noexcept override { return parts_->attendant.call(); }

 private:
  engine::Progress pass(Operation& operation);
  void rest();
  engine::Progress break_off(const Error& error, Operation& operation);
  engine::Progress await_verdict(Operation& operation);
  void report(bootstrap::Report::Reason reason, std::optional<Rank> peer);
  void report(bootstrap::Report::Reason reason, const bootstrap::CallKey& key);
  bool report_within(const bootstrap::CallKey& agreed);
  bool complete_with_summary();
  Error fail(Error error);
  Error told(const Operation& operation);

  std::optional<Parts> parts_;
  // The driver's.
  TimePoint deadline_, verdict_by_;
  bool moving_ = true;           // since the driver last looked at the clock
  TimePoint report_at_;          // when to report that nothing moves
  std::optional<Error> broken_;  // the operation's, while the control plane may still say what the cause is
  bool told_ = false;            // a caller has been given the failure
  bootstrap::CallKey reported_;  // what was reported so
  std::mutex summary_mutex_;
  std::optional<bootstrap::Summary> summary_;
};

}  // namespace rondo
