#include "communicator/operations.hpp"

#include <utility>

namespace rondo {

using engine::Progress;

namespace {

// The service thread has other communicators and the control plane to look after.
constexpr std::chrono::microseconds turn{100};

// Whose callbacks this thread is in.
thread_local const Operations* calling_back = nullptr;

}  // namespace

void Operations::run(Operation& operation) {
  Lock lock(mutex_);
  push(operation);
  await(lock, operation, TimePoint::max());
}

void Operations::submit(Operation& operation) {
  const Lock lock(mutex_);
  const bool first = front_ == nullptr;
  push(operation);
  if (first) pass_on();
}

bool Operations::wait(Operation& operation, TimePoint until) {
  if (operation.ended.load(std::memory_order_acquire)) return true;
  Lock lock(mutex_);
  return await(lock, operation, until);
}

void Operations::attach(Operation& operation, std::function<void()> then) {
  {
    const Lock lock(mutex_);
    if (!operation.ended.load(std::memory_order_relaxed)) {
      if (operation.then)
        then = [first = std::move(operation.then), second = std::move(then)] { first(), second(); };
      operation.then = std::move(then);
      return;
    }
  }
  then();
}

void Operations::close() {
  Lock lock(mutex_);
  while (driven_by_another() || front_ != nullptr) {
    if (driven_by_another())
      wait_for_change(lock, TimePoint::max());
    else
      drive(lock, nullptr, TimePoint::max());
  }
}

// ---- The FIFO. All under the lock.

void Operations::push(Operation& operation) {
  if (front_ == nullptr) {
    front_ = &operation;
    earliest_.store(operation.deadline, std::memory_order_relaxed);
  } else {
    back_->next = &operation;
    if (operation.deadline < earliest_.load(std::memory_order_relaxed)) {
      earliest_.store(operation.deadline, std::memory_order_relaxed);
      driver_.ring();  // whoever sleeps must wake earlier now
    }
  }
  back_ = &operation;
}

// The driver: the front operation has ended. Its memory may be gone once `ended` is set and the lock free.
void Operations::pop() {
  Operation& operation = *front_;
  front_ = operation.next;
  if (front_ == nullptr) back_ = nullptr;
  begun_ = false;
  end(operation);
}

void Operations::end(Operation& operation) {
  if (operation.then) callbacks_.push_back(std::move(operation.then));
  operation.ended.store(true, std::memory_order_release);
  if (waiting_ > 0) changed_.notify_all();
}

// The driver: of operations that have ended. The lock is given up meanwhile, the drive is not; but a callback that
// waits, or destroys the communicator, drives.
void Operations::call_back(Lock& lock) {
  if (callbacks_.empty()) return;
  const auto callbacks = std::exchange(callbacks_, {});
  lock.unlock();
  const auto* const outer = std::exchange(calling_back, this);
  for (const auto& callback : callbacks) callback();
  calling_back = outer;
  lock.lock();
}

bool Operations::driven_by_another() const { return driven_ && calling_back != this; }

// The driver: operations whose deadline came before their turn end here, out of order; after that the
// communicator has failed, so none that follows them is run. The front one looks after itself.
void Operations::drop_late() {
  const TimePoint now = Clock::now();
  TimePoint earliest = front_->deadline;
  for (Operation* before = front_; before->next != nullptr;) {
    Operation& operation = *before->next;
    if (operation.deadline > now) {
      earliest = std::min(earliest, operation.deadline);
      before = &operation;
      continue;
    }
    before->next = operation.next;
    if (back_ == &operation) back_ = before;
    operation.error = driver_.too_late(operation);
    end(operation);
  }
  earliest_.store(earliest, std::memory_order_relaxed);
}

// ---- The drive. Called and left with the lock.

// Nobody drives, and somebody must. Waiting threads drive before the service does.
void Operations::pass_on() {
  if (waiting_ > 0)
    changed_.notify_all();
  else if (!called_)
    called_ = driver_.call_service();  // without it, whoever waits next drives
}

bool Operations::await(Lock& lock, Operation& operation, TimePoint until) {
  const auto ended = [&] { return operation.ended.load(std::memory_order_relaxed); };
  bool in_time = true;
  while (!ended() && in_time)
    in_time = driven_by_another() ? wait_for_change(lock, until) : drive(lock, &operation, until);
  // This thread may be the one that was woken to drive.
  if (!driven_ && front_ != nullptr) pass_on();
  return ended();
}

// False when `until` has passed.
bool Operations::wait_for_change(Lock& lock, TimePoint until) {
  waiting_++;
  bool in_time = true;
  if (until == TimePoint::max())
    changed_.wait(lock);
  else
    in_time = changed_.wait_until(lock, until) == std::cv_status::no_timeout;
  waiting_--;
  return in_time;
}

// Everything in order until `mine` has ended, or all when there is none; false when `until` came first.
bool Operations::drive(Lock& lock, const Operation* mine, TimePoint until) {
  const auto done = [&] { return mine ? mine->ended.load(std::memory_order_relaxed) : front_ == nullptr; };
  const bool in_callback = std::exchange(driven_, true);
  bool in_time = true;
  while (!done() && in_time) {
    lock.unlock();
    in_time = front_has_ended(until);
    lock.lock();
    if (in_time) pop();
    call_back(lock);
  }
  driven_ = in_callback;
  return in_time;
}

// ---- The driver, without the lock.

Progress Operations::pass() {
  if (!std::exchange(begun_, true)) driver_.begin(*front_);
  const Progress progress = driver_.advance(*front_);
  const TimePoint earliest = earliest_.load(std::memory_order_relaxed);
  if (progress == Progress::ended || earliest == front_->deadline || Clock::now() < earliest) return progress;
  const Lock lock(mutex_);
  drop_late();
  return Progress::idle;
}

bool Operations::front_has_ended(TimePoint until) {
  while (true) {
    switch (pass()) {
      case Progress::ended:
        return true;
      case Progress::asleep:
        driver_.sleep(std::min({until, driver_.wake_at(), earliest_.load(std::memory_order_relaxed)}));
        break;
      case Progress::moved:
      case Progress::idle:
        break;
    }
    if (until != TimePoint::max() && Clock::now() >= until) return false;
  }
}

// ---- The service thread.

Operations::Next Operations::serve() {
  Lock lock(mutex_);
  called_ = false;
  if (driven_ || front_ == nullptr || waiting_ > 0) return {};
  driven_ = true;
  if (std::exchange(dozing_, false)) driver_.sleep(TimePoint());  // takes what woke it
  Progress progress = Progress::moved;
  const TimePoint enough = Clock::now() + turn;
  while (front_ != nullptr && waiting_ == 0 && progress == Progress::moved && Clock::now() < enough) {
    lock.unlock();
    progress = pass();
    lock.lock();
    if (progress != Progress::ended) continue;
    pop();
    call_back(lock);
    progress = Progress::moved;
  }
  if (!callbacks_.empty()) {
    call_back(lock);
    progress = Progress::moved;  // the front may be another one now
  }
  driven_ = false;
  if (waiting_ > 0) changed_.notify_all();
  if (waiting_ > 0 || front_ == nullptr) return {};
  if (progress != Progress::asleep) return {Next::Kind::again};
  dozing_ = true;
  return {Next::Kind::sleep, std::min(driver_.wake_at(), earliest_.load(std::memory_order_relaxed))};
}

}  // namespace rondo
