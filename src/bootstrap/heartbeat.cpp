#include "bootstrap/heartbeat.hpp"

#include <algorithm>

namespace rondo::bootstrap {

void Heartbeat::start(milliseconds patience, Beat beat) {
  patience_ = patience;
  for (size_t peer = 0; peer < peers_.size(); ++peer) heard(peer);
  if (patience.count() == 0) return;
  beat_ = std::move(beat);
  wait();
}

void Heartbeat::wait() {
  timer_.expires_after(std::max(patience_ / beats, milliseconds(1)));
  timer_.async_wait([beat = beat_, this](const asio::error_code& error) {
    if (error) return;
    const auto owner = beat();  // without one, this object is gone
    if (!owner) return;
    for (Peer& peer : peers_) ++peer.missed;
    wait();
  });
}

milliseconds Heartbeat::silence(size_t peer) const noexcept {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - peers_[peer].heard);
}

}  // namespace rondo::bootstrap
