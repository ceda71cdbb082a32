// Wakes ranks of this machine that sleep: a datagram to an abstract Unix socket that the sleeper's epoll
// watches. Two descriptors whatever the number of peers. What arrives says nothing but "look again", so a
// forged one does no harm, and a full queue is as good as one more datagram.
#pragma once
#include <memory>

#include "transport/shm/area.hpp"

namespace rondo::shm {

class Bell {
 public:
  /// Errors: system.
  static Result<std::unique_ptr<Bell>> make();

  const BellName& name() const noexcept { return name_; }
  /// Readable when it has been rung; to be watched edge-triggered.
  int descriptor() const noexcept { return listening_.get(); }
  /// The sleeper, before it looks for the last time: whatever is rung from now on wakes it.
  void silence() noexcept;
  /// Any thread. Rings another rank's.
  void ring(const BellName& other) const noexcept;

 private:
  Bell(const BellName& name, Descriptor listening, Descriptor ringing)
      : name_(name), listening_(std::move(listening)), ringing_(std::move(ringing)) {}

  BellName name_;
  // Two, for a socket that sends is woken again when what it sent has been read.
  Descriptor listening_, ringing_;
};

}  // namespace rondo::shm
