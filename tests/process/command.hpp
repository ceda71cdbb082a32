// Runs a command as a process with a time limit, and finds out what it leaves behind.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace rondo::test {

struct Ended {
  int code = -1;  // exit code; 128 + signal
  std::string out, err;
  double seconds = 0;
  bool too_late = false;  // it had to be killed by the test
};

/// A running command, in a process group of its own, killed at the end of its scope if it still runs. `mark`
/// is put into its environment, by which all its descendants can be found whatever they have become.
class Command {
 public:
  explicit Command(const std::vector<std::string>& words, const std::vector<std::string>& environment = {});
  ~Command();
  Command(const Command&) = delete;

  pid_t pid() const { return pid_; }
  /// Reads its output until `text` has been seen; false after `limit_s`.
  bool wait_for_output(const std::string& text, double limit_s = 10);
  Ended wait(double limit_s = 20);
  /// Whether it ends by then, its output being read meanwhile.
  bool ended_within(double limit_s);
  void close_output();
  /// Processes with this command's mark.
  std::vector<pid_t> alive() const;
  /// Until none is alive; the seconds it took, or -1 after `limit_s`.
  double seconds_until_gone(double limit_s = 5) const;

 private:
  bool read_some(int timeout_ms);
  const std::string mark_;
  pid_t pid_ = -1;
  Descriptor out_, err_;
  Ended ended_;
  double started_ = 0;
};

inline Ended run(const std::vector<std::string>& words, const std::vector<std::string>& environment = {},
                 double limit_s = 20) {
  return Command(words, environment).wait(limit_s);
}

std::string last_line(const std::string& text);
std::vector<std::string> lines(const std::string& text);
/// The names in /dev/shm and /tmp that may be Rondo's.
std::vector<std::string> shared_places();

}  // namespace rondo::test
