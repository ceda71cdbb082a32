#include "communicator/runner.hpp"

#include <fmt/format.h>

#include <exception>

#include "communicator/accounts.hpp"

namespace rondo {

using engine::Progress;
using Reason = bootstrap::Report::Reason;

namespace {

// How long a broken link waits for the control plane to say which rank is the cause: a neighbour may have
// closed only because it had learnt of the failure first.
constexpr milliseconds verdict_time{250};
// For the answers of all ranks to a question, asked twice where they differ, and as much again for their way.
constexpr milliseconds disagreement_time = 3 * bootstrap::answer_patience + milliseconds(100),
                       summary_time = 2 * bootstrap::answer_patience;
// Without movement: long for a network and short for a person.
constexpr milliseconds quiet_time{100};

Error unexpected(const std::exception& exception) {
  return {ErrorCode::system, fmt::format("an operation was given up: {}", exception.what())};
}

}  // namespace

void Runner::spread(const Error& error) noexcept {
  if (parts_->failure.set(error)) parts_->job.announce(error);
  parts_->waiter.ring();
}

void Runner::begin(Operation& operation) {
  deadline_ = operation.deadline;
  if (parts_->injector != nullptr) parts_->injector->begin(engine::header_bytes_of(operation.call));
  moving_ = true;
  report_at_ = TimePoint::max();
  if (parts_->failure.is_set()) {
    operation.error = told(operation);
    return;
  }
  try {
    parts_->engine.begin(operation.call, operation.deadline);
  } catch (const std::exception& exception) {
    operation.error = fail(unexpected(exception));
  }
}

TimePoint Runner::wake_at() const {
  const TimePoint own = broken_ ? verdict_by_ : std::min(deadline_, report_at_);
  return parts_->injector != nullptr ? std::min(own, parts_->injector->wake_at()) : own;
}

Progress Runner::advance(Operation& operation) {
  if (operation.error) return Progress::ended;
  if (broken_) return await_verdict(operation);
  try {
    return pass(operation);
  } catch (const std::exception& exception) {
    operation.error = fail(unexpected(exception));
    return Progress::ended;
  }
}

Progress Runner::pass(Operation& operation) {
  const Progress progress = parts_->engine.advance();
  const std::optional<Error>& error = parts_->engine.error();
  if (progress == Progress::ended && !error && operation.group) operation.group->unpack();
  switch (progress) {
    case Progress::moved:
      moving_ = true;
      return progress;
    case Progress::asleep:
      rest();
      return progress;
    case Progress::idle:
      return progress;
    case Progress::ended:
      return error ? break_off(*error, operation) : progress;
  }
  return progress;
}

// Before a sleep, so that looking at the clock costs nothing.
void Runner::rest() {
  const TimePoint now = Clock::now();
  if (std::exchange(moving_, false)) report_at_ = now + quiet_time;
  if (now < report_at_) return;
  report_at_ = TimePoint::max();
  report(Reason::quiet, std::nullopt);
}

Progress Runner::break_off(const Error& error, Operation& operation) {
  const bool known = parts_->failure.is_set();  // the error tells of it
  broken_ = error;
  verdict_by_ = Clock::now();
  if (!known && error.code == ErrorCode::peer_lost) verdict_by_ += verdict_time;
  if (!known && error.code == ErrorCode::mismatch) {
    report(Reason::ends, error.peer);
    verdict_by_ += disagreement_time;
  }
  if (!known && error.code == ErrorCode::timeout) {
    report(Reason::ends, error.peer);
    verdict_by_ += summary_time;
  }
  return await_verdict(operation);
}

Progress Runner::await_verdict(Operation& operation) {
  const bool known = parts_->failure.is_set() || complete_with_summary();
  if (!known && Clock::now() < verdict_by_) return Progress::asleep;
  Error error = *std::exchange(broken_, std::nullopt);
  if (parts_->failure.is_set()) error = parts_->engine.explain(parts_->failure.get());
  if (!known && error.code == ErrorCode::timeout && parts_->job.world() > 1) {
    error.message += "; rank 0, which asks the others what they do, has not answered";
    // Which may be what holds up all the others; not where it is only slow to answer, and has made this call.
    if (parts_->job.rank() != 0 && !(error.peer && parts_->engine.has_called(0))) error.peer = 0;
  }
  operation.error = fail(std::move(error));
  return Progress::ended;
}

void Runner::report(Reason reason, std::optional<Rank> peer) {
  const auto& recorder = parts_->engine.recorder();
  const auto record = recorder.at(recorder.last());
  if (!record || parts_->job.world() == 1) return;
  auto key = key_of(*record, parts_->job.rank(), peer);
  if (const auto disputed = parts_->engine.disputed()) key = {0, *disputed};
  report(reason, key);
}

void Runner::report(Reason reason, const bootstrap::CallKey& key) {
  if (reason == Reason::ends) {
    const std::lock_guard lock(summary_mutex_);
    reported_ = key;
    summary_.reset();
  }
  parts_->job.report(reason, key);
}

// The ranks do not disagree about the call itself, so it may be about what two of them exchange in it.
bool Runner::report_within(const bootstrap::CallKey& agreed) {
  const auto& recorder = parts_->engine.recorder();
  const auto record = recorder.at(recorder.last());
  const Rank rank = parts_->job.rank();
  if (!record || !broken_->peer || agreed != key_of(*record, rank, std::nullopt)) return false;
  const auto key = key_within(*record, rank, *broken_->peer);
  if (key) report(Reason::ends, *key);
  return key.has_value();
}

void Runner::summarised(const bootstrap::Summary& summary) {
  {
    const std::lock_guard lock(summary_mutex_);
    if (summary.key != reported_) return;
    summary_ = summary;
  }
  parts_->waiter.ring();
}

// Whether the ranks have been asked and nothing more is to come. An operation that is late now says who is to blame;
// of a header that does not fit, a rank that has not called yet may still say more.
bool Runner::complete_with_summary() {
  std::optional<bootstrap::Summary> found;
  {
    const std::lock_guard lock(summary_mutex_);
    found = std::exchange(summary_, std::nullopt);
  }
  if (!found) return false;
  const bootstrap::Summary& summary = *found;
  if (broken_->code == ErrorCode::mismatch) return !report_within(summary.key) && !summary.peer;
  broken_->message += "; " + summary.text;
  if (summary.peer && *summary.peer != parts_->job.rank()) broken_->peer = summary.peer;
  return true;
}

// The operation under way failed: the whole communicator has.
Error Runner::fail(Error error) {
  told_ = true;
  if (parts_->failure.set(error)) {
    parts_->job.announce(error);
  } else if (const Error cause = parts_->failure.get();
             error.message.find(cause.message) == std::string::npos) {
    error = {cause.code, error.message + "; cause: " + cause.message, cause.peer ? cause.peer : error.peer};
  }
  parts_->fabric.close();
  return error;
}

// The communicator has failed between two operations, or in an earlier one. The first caller after it is told as if its
// own call had failed.
Error Runner::told(const Operation& operation) {
  Error first = parts_->failure.get();
  if (!std::exchange(told_, true)) {
    first.message = fmt::format("rank {} of {}, before its call ({}): {}", parts_->job.rank(),
                                parts_->job.world(), describe(operation.call), first.message);
    return first;
  }
  return {ErrorCode::aborted, "this communicator has failed: " + first.message, first.peer};
}

// An operation whose turn did not come in time was not made, so every later one would meet the wrong ones of
// its peers.
Error Runner::too_late(const Operation& operation) {
  Error error = parts_->engine.explain(parts_->engine.held_up());
  error.message +=
      fmt::format("; {} waited for earlier operations of this communicator until its deadline passed",
                  describe(operation.call));
  if (!parts_->failure.set(error)) return told(operation);
  told_ = true;
  parts_->job.announce(error);
  parts_->waiter.ring();
  return error;
}

}  // namespace rondo
