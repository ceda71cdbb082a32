#include "cli/output.hpp"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rondo::cli {
namespace {

constexpr size_t most_waiting = 1 << 20, longest_line = 1 << 20;

bool is_regular_file(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Outlet::Outlet(int fd) : fd_(fd), can_block_(!is_regular_file(fd)) {}

bool Outlet::full() const { return queue_.size() - done_ > most_waiting; }

void Outlet::write(std::string_view text) {
  if (!dead_) queue_ += text;
}

// The descriptor is shared with whoever started the launcher, so it must stay as it is, blocking; but a pipe
// that polls as writable takes PIPE_BUF bytes at once.
void Outlet::pump() {
  while (!empty() && !dead_) {
    pollfd ready{fd_, POLLOUT, 0};
    if (can_block_ && ::poll(&ready, 1, 0) != 1) return;
    const size_t size = std::min(queue_.size() - done_, size_t(can_block_ ? PIPE_BUF : INT_MAX));
    const ssize_t written = ::write(fd_, queue_.data() + done_, size);
    if (written > 0)
      done_ += size_t(written);
    else if (written < 0 && errno == EAGAIN)
      return;
    else if (written < 0 && errno != EINTR)
      dead_ = true;
  }
  queue_.clear();
  done_ = 0;
}

void LineRelay::feed(std::string_view text) {
  for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    partial_ += text.substr(0, end);
    line(partial_);
    partial_.clear();
  }
  partial_ += text;
  if (partial_.size() > longest_line) finish();
}

void LineRelay::finish() {
  if (!partial_.empty()) line(partial_);
  partial_.clear();
}

void LineRelay::line(std::string_view text) {
  outlet_->write(prefix_);
  outlet_->write(text);
  outlet_->write("\n");
}

}  // namespace rondo::cli
