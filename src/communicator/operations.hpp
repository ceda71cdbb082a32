// The operations of one communicator, in the order in which they were called, and the word that says who
// drives them. One thread at a time is the driver; it runs them in order.
//
//   blocking call, Work::wait     takes the drive when it is free, and keeps it until its own has ended
//   service thread                takes it for a short turn at a time, and not while somebody waits
//
//   FIFO   [front: under way] -> [queued] -> [queued]
//             ^ driver                          ^ new operations
//
// While the FIFO is not empty, a thread drives, or one that waits has been woken to do it, or the service
// thread has been called or sleeps on the driver's waiter. So nobody who waits needs a deadline of its own:
// whoever drives keeps the deadlines of all.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "communicator/group.hpp"
#include "engine/call.hpp"
#include "engine/progress.hpp"
#include "rondo/result.hpp"

namespace rondo {

/// The memory is its caller's, and must last until it has ended.
struct Operation {
  engine::Call call;
  TimePoint deadline;
  std::unique_ptr<Group> group = nullptr;  // whose memory the call's buffers are
  std::atomic<bool> ended{false};
  std::optional<Error> error = std::nullopt;  // written before `ended`, never after it
  std::function<void()> then = nullptr;       // called when it has ended; guarded by the FIFO's lock
  Operation* next = nullptr;                  // guarded by the FIFO's lock
};

/// What runs the operations, the same one from begin() until advance() says `ended`; by then it has written
/// the operation's error, if there is one. All but ring() and call_service() are called by whoever drives.
class Driver {
 public:
  virtual void begin(Operation& operation) = 0;
  virtual engine::Progress advance(Operation& operation) = 0;
  /// How long it may sleep at most.
  virtual TimePoint wake_at() const = 0;
  virtual void sleep(TimePoint until) = 0;
  /// The deadline of an operation passed before its turn. Fails the communicator; what the caller is told.
  virtual Error too_late(const Operation& operation) = 0;

  /// Any thread; wakes a sleep, or makes the next one return at once.
  virtual void ring() = 0;
  /// Any thread, under the FIFO's lock: the service thread shall call serve(). False: it cannot be called.
  virtual bool call_service() noexcept = 0;

 protected:
  ~Driver() = default;
};

/// Any thread. The driver is not used any more after close().
class Operations {
 public:
  explicit Operations(Driver& driver) : driver_(driver) {}

  /// Queues it and returns when it has ended.
  void run(Operation& operation);
  /// Queues it and returns at once.
  void submit(Operation& operation);
  /// Until it has ended (true), or `until`; TimePoint::max(): its own deadline.
  bool wait(Operation& operation, TimePoint until);

  /// Has `then` called once the operation has ended, by whoever ends it, or now if it has.
  void attach(Operation& operation, std::function<void()> then);

  /// A turn of the service thread, never long: what to do after it. `sleep`: until the driver's waiter wakes
  /// or `at` has come.
  struct Next {
    enum class Kind : uint8_t { nothing, again, sleep } kind = Kind::nothing;
    TimePoint at{};
  };
  Next serve();

  /// Ends all there are; the communicator has failed, so that is quick. No operation may come after it.
  void close();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void push(Operation& operation);
  void pop();
  void end(Operation& operation);
  void call_back(Lock& lock);
  bool await(Lock& lock, Operation& operation, TimePoint until);
  bool drive(Lock& lock, const Operation* mine, TimePoint until);
  bool front_has_ended(TimePoint until);
  engine::Progress pass();
  bool wait_for_change(Lock& lock, TimePoint until);
  bool driven_by_another() const;
  void pass_on();
  void drop_late();

  Driver& driver_;
  std::mutex mutex_;
  std::condition_variable changed_;  // an operation has ended, or the drive is free
  uint32_t waiting_ = 0;             // threads
  bool driven_ = false;              // the driver word
  bool called_ = false;              // the service, which has not come yet
  bool dozing_ = false;              // the service sleeps on the waiter
  Operation* front_ = nullptr;       // changed only by the driver, or when there was none
  Operation* back_ = nullptr;
  bool begun_ = false;                            // the front one; the driver's
  std::vector<std::function<void()>> callbacks_;  // of operations that have ended; the driver's
  // No deadline in the FIFO comes before this. It may be that of an operation which has ended: when it has
  // passed, whoever drives looks at all of them.
  std::atomic<TimePoint> earliest_{TimePoint::max()};
};

}  // namespace rondo
