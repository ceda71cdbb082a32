#include "base/text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/descriptor.hpp"

namespace rondo {
namespace {

constexpr std::chrono::seconds patience{3};  // with whoever writes into a pipe

Error unreadable(const std::string& why) { return {ErrorCode::invalid_argument, "cannot be read: " + why}; }

}  // namespace

Result<std::string> read_text(const std::string& path, size_t longest) {
  const TimePoint give_up = deadline_after(patience);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return unreadable(std::strerror(errno));
  std::string text(longest + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    // A pipe that nobody has opened for writing yet is not ready, but reads as if it had ended.
    pollfd ready{file.get(), POLLIN, 0};
    const auto left = std::chrono::ceil<milliseconds>(give_up - Clock::now());
    if (::poll(&ready, 1, int(std::max(left, milliseconds(0)).count())) == 0)
      return unreadable(fmt::format("nothing has come out of it for {} s", patience.count()));
    const ssize_t n = ::read(file.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return unreadable(std::strerror(errno));
    if (n == 0) break;
    size += size_t(std::max(n, ssize_t(0)));
  }
  if (size > longest)
    return Error{ErrorCode::invalid_argument, fmt::format("the file is longer than {} bytes", longest)};
  text.resize(size);
  return text;
}

}  // namespace rondo
