// rondo::Work: an operation that goes on while its caller does something else.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "rondo/result.hpp"

namespace rondo {

struct PendingOperation;

/// An operation under way. Move-only. Its buffers belong to Rondo until it has ended; so does their memory,
/// which is why the destruction of a Work whose operation has not ended waits for it, as wait() does: until
/// the operation's own deadline at most, and under a second after abort() or the end of its communicator.
///
/// An operation always ends, whether or not anybody waits: with success, or with an error by its deadline.
/// The outcome stays readable as long as the Work lives, which may be longer than the communicator. Any
/// thread may wait or ask, several at once too.
class [[nodiscard]] Work {
 public:
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  /// Until the operation has ended; its outcome, every time. The waiting thread itself does the work.
  /// One that was moved from gives invalid_argument.
  Result<void> wait();
  /// The same, but for at most `limit`. When that has passed, the result is `timeout` and the operation goes
  /// on: this is no error of the operation. test() tells the two apart.
  Result<void> wait(std::chrono::milliseconds limit);
  /// Whether it has ended. Never blocks.
  bool test() const noexcept;
  /// Calls `callback` once, when the operation has ended: on the thread that ended it, which may be the
  /// library's own, or now if it has. It must be short and must not throw: on the library's thread all communicators
  /// wait for it, and none can be made (split, duplicate, shrink, grow, create: invalid_argument). It may destroy the
  /// communicator, unless it runs within a call on that. Several are called in their order; without effect on a Work
  /// that was moved from.
  void on_end(std::function<void()> callback);
  /// The error with which it ended; nothing while it is under way or when all went well.
  std::optional<Error> error() const;

  /// Made by Communicator's async calls.
  explicit Work(std::unique_ptr<PendingOperation> pending) noexcept;

 private:
  std::unique_ptr<PendingOperation> pending_;
};

}  // namespace rondo
