// Notices that a process of this machine has ended. Mostly the end of its connection says so, but not when it
// has made a child by fork() that lives on: that holds the parent's sockets, and they stay open.
//
//     0 <- 1 <- 2 <- 3     every rank watches the one before it, and rank 0
//      `------------'      rank 0 the last: one or two descriptors, whatever the world
#pragma once
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>

#include "bootstrap/wire.hpp"

namespace rondo::bootstrap {

/// Whether `other` is another process of this rank's machine and PID namespace.
bool is_other_process_here(Rank rank, Rank other, const std::vector<Person>& persons);
/// The nearest rank before this one, in a circle, that is one.
std::optional<Rank> watched_by(Rank rank, const std::vector<Person>& persons);

/// Service thread.
class Watch : public std::enable_shared_from_this<Watch> {
 public:
  /// `ended` is called once, from a handler, when the process has ended. Nothing where it cannot be watched.
  static std::shared_ptr<Watch> start(asio::io_context& context, const Person& person,
                                      std::function<void()> ended);
  explicit Watch(asio::io_context& context) : process_(context) {}
  void stop() noexcept;

 private:
  asio::posix::stream_descriptor process_;
};

}  // namespace rondo::bootstrap
