#include "rondo/work.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "communicator/pending.hpp"

namespace rondo {
namespace {

Result<void> outcome_of(const Operation& operation) {
  if (operation.error) return *operation.error;
  return {};
}

Error moved_from() { return {ErrorCode::invalid_argument, "this Work was moved from"}; }

}  // namespace

Work::Work(std::unique_ptr<PendingOperation> pending) noexcept : pending_(std::move(pending)) {}
Work::Work(Work&&) noexcept = default;

Work& Work::operator=(Work&& other) noexcept {
  if (this == &other) return *this;
  if (pending_) pending_->operations->wait(pending_->operation, TimePoint::max());
  pending_ = std::move(other.pending_);
  return *this;
}

Work::~Work() {
  if (pending_) pending_->operations->wait(pending_->operation, TimePoint::max());
}

Result<void> Work::wait() {
  if (!pending_) return moved_from();
  pending_->operations->wait(pending_->operation, TimePoint::max());
  return outcome_of(pending_->operation);
}

Result<void> Work::wait(std::chrono::milliseconds limit) {
  if (!pending_) return moved_from();
  if (pending_->operations->wait(pending_->operation, deadline_after(limit)))
    return outcome_of(pending_->operation);
  return Error{ErrorCode::timeout,
               fmt::format("{} has not ended within {} ms; it goes on", describe(pending_->operation.call),
                           std::max<int64_t>(limit.count(), 0))};
}

bool Work::test() const noexcept {
  return !pending_ || pending_->operation.ended.load(std::memory_order_acquire);
}

void Work::on_end(std::function<void()> callback) {
  if (pending_) pending_->operations->attach(pending_->operation, std::move(callback));
}

std::optional<Error> Work::error() const {
  if (!pending_ || !test()) return std::nullopt;
  return pending_->operation.error;
}

}  // namespace rondo
