// Notices that a process or its machine has stopped, which no closed connection tells. Both ends of a control
// connection send a beat ten times within the patience, and count the intervals in which nothing came.
//
// Intervals are counted, not time: a process that was stopped itself must not blame the others for it.
#pragma once
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "rondo/types.hpp"

namespace rondo::bootstrap {

/// Service thread.
class Heartbeat {
 public:
  Heartbeat(asio::io_context& context, size_t peers) : timer_(context), peers_(peers) {}

  /// `beat` is called once per interval, from a handler, and returns this object's owner, or nothing to end it.
  /// A patience of zero: never.
  using Beat = std::function<std::shared_ptr<void>()>;
  void start(milliseconds patience, Beat beat);
  void stop() noexcept { timer_.cancel(); }
  void heard(size_t peer) noexcept { peers_[peer] = {0, Clock::now()}; }
  /// Nothing has come for the whole patience.
  bool is_silent(size_t peer) const noexcept { return peers_[peer].missed > beats; }
  milliseconds silence(size_t peer) const noexcept;
  milliseconds patience() const noexcept { return patience_; }

 private:
  static constexpr uint32_t beats = 10;
  struct Peer {
    uint32_t missed = 0;
    TimePoint heard{};
  };
  void wait();

  asio::steady_timer timer_;
  milliseconds patience_{0};
  std::vector<Peer> peers_;
  Beat beat_;
};

}  // namespace rondo::bootstrap
