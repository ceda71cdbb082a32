#include "communicator/runner.hpp"

#include <fmt/format.h>

#include <exception>

namespace rondo {

using engine::Progress;

namespace {

// How long a broken link waits for the control plane to say which rank is the cause: a neighbour may have
// closed only because it had learnt of the failure first.
constexpr milliseconds verdict_time{250};

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
  if (parts_->failure.is_set()) {
    operation.error = told();
    return;
  }
  try {
    parts_->engine.begin(operation.call, operation.deadline);
  } catch (const std::exception& exception) {
    operation.error = fail(unexpected(exception));
  }
}

TimePoint Runner::wake_at() const {
  const TimePoint own = lost_ ? verdict_by_ : deadline_;
  return parts_->injector != nullptr ? std::min(own, parts_->injector->wake_at()) : own;
}

Progress Runner::advance(Operation& operation) {
  if (operation.error) return Progress::ended;
  if (lost_) return await_verdict(operation);
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
  if (progress != Progress::ended || !error) return progress;
  if (error->code == ErrorCode::peer_lost) {
    lost_ = error;
    verdict_by_ = deadline_after(verdict_time);
    return await_verdict(operation);
  }
  operation.error = fail(*error);
  return Progress::ended;
}

Progress Runner::await_verdict(Operation& operation) {
  if (!parts_->failure.is_set() && Clock::now() < verdict_by_) return Progress::asleep;
  operation.error = fail(*std::exchange(lost_, std::nullopt));
  return Progress::ended;
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

// The communicator has failed between two operations, or in an earlier one.
Error Runner::told() {
  const Error first = parts_->failure.get();
  if (!std::exchange(told_, true)) return first;
  return {ErrorCode::aborted, "this communicator has failed: " + first.message, first.peer};
}

// An operation whose turn did not come in time was not made, so every later one would meet the wrong ones of
// its peers.
Error Runner::too_late(const Operation& operation) {
  Error error{ErrorCode::timeout,
              fmt::format("rank {}: {} waited for earlier operations of this communicator until its deadline "
                          "passed",
                          parts_->job.rank(), describe(operation.call))};
  if (!parts_->failure.set(error)) return told();
  told_ = true;
  parts_->job.announce(error);
  parts_->waiter.ring();
  return error;
}

}  // namespace rondo
