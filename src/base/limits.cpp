#include "base/limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <optional>

namespace rondo {
namespace {

std::optional<rlim_t> limit_of(decltype(RLIMIT_NOFILE) which) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

std::string descriptor_limit(int error) {
  const auto limit = limit_of(RLIMIT_NOFILE);
  if (error == ENFILE || !limit) return "the limit of the whole machine, fs.file-max, is reached";
  return fmt::format("ulimit -n is {}", *limit);
}

std::string limit_behind(int error) {
  switch (error) {
    case EMFILE:
      return fmt::format("; {}: raise it (rondo doctor says how)", descriptor_limit(error));
    case ENFILE:
      return fmt::format("; {}: raise it with sysctl", descriptor_limit(error));
    case EFBIG: {
      const auto limit = limit_of(RLIMIT_FSIZE);
      return limit ? fmt::format("; no file may be larger than {} bytes: raise ulimit -f", *limit)
                   : std::string();
    }
    case EAGAIN: {
      const auto limit = limit_of(RLIMIT_NPROC);
      return fmt::format(
          "; this user may have {} processes and threads (ulimit -u), its control group pids.max: raise the "
          "one that is reached",
          limit ? std::to_string(*limit) : "any number of");
    }
    default:
      return {};
  }
}

}  // namespace rondo
