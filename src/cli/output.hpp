// From the pipes of the ranks to the launcher's own output, line by line, without ever blocking on a slow
// reader.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace rondo::cli {

/// Standard output or standard error of the launcher.
class Outlet {
 public:
  explicit Outlet(int fd);
  void write(std::string_view text);
  /// Writes what goes without blocking.
  void pump();
  bool empty() const { return queue_.size() == done_; }
  /// Too much waits: its sources should pause.
  bool full() const;
  int fd() const { return fd_; }

 private:
  const int fd_;
  bool can_block_ = true;  // false: a regular file
  bool dead_ = false;      // nobody reads any more: everything is dropped
  std::string queue_;
  size_t done_ = 0;  // bytes of the queue that are written
};

/// Cuts what one rank prints into lines and puts `prefix` before each.
class LineRelay {
 public:
  LineRelay(std::string prefix, Outlet& outlet) : prefix_(std::move(prefix)), outlet_(&outlet) {}
  void feed(std::string_view text);
  /// The end of the source: a line without an end gets one.
  void finish();
  Outlet& outlet() const { return *outlet_; }

 private:
  void line(std::string_view text);
  std::string prefix_, partial_;
  Outlet* outlet_;
};

}  // namespace rondo::cli
