// Where a process tells what its communicators are doing, to whoever of its user asks:
//
//   connect to the abstract Unix socket rondo-state-<pid>  ->  one JSON document, then the end
//   SIGUSR1, if RONDO_STATE_SIGNAL=1                       ->  the same on stderr
#pragma once
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace rondo::bootstrap {

/// One per process, in its Service.
class StateDoor : public std::enable_shared_from_this<StateDoor> {
 public:
  explicit StateDoor(asio::io_context& context) : context_(context), listener_(context), signal_(context) {}

  /// Any thread. `tell` gives a JSON object; the service thread calls it until remove(). The first one opens the
  /// door; where that is refused nobody can ask, and that is all.
  uint64_t add(std::function<std::string()> tell);
  /// Any thread but the service thread in `tell`. After it the call is not made any more.
  void remove(uint64_t id) noexcept;
  /// Any thread. Also at SIGUSR1, whose handler this replaces.
  void answer_signal();

 private:
  void open();
  void wait();
  // The service thread.
  void serve();
  void await_signal();
  std::string document();

  asio::io_context& context_;
  asio::posix::stream_descriptor listener_;
  asio::signal_set signal_;
  std::mutex mutex_;  // of the rest; held while they tell
  std::map<uint64_t, std::function<std::string()>> tellers_;
  uint64_t next_ = 0;
  bool opened_ = false, answers_signal_ = false;
};

}  // namespace rondo::bootstrap
