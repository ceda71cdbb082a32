// All that the ranks print, on its way to the launcher's own output.
#pragma once

#include <unistd.h>

#include <deque>
#include <string>

#include "cli/output.hpp"
#include "cli/processes.hpp"
#include "cli/watch.hpp"

namespace rondo::cli {

/// A reader that is slow pauses the ranks, and never the launcher.
class Streams {
 public:
  explicit Streams(Watch& watch) : watch_(watch) {}
  /// Takes the pipes of a rank; every line gets `prefix`.
  void add(Started& process, const std::string& prefix);
  /// Pipe `index` is ready (Source::pipe).
  void read(size_t index);
  void pump();
  /// A line of the launcher's own, on standard error.
  void say(const std::string& line) { errors_.write(line); }
  /// What is in the pipes now; a descendant that holds one open does not make this wait.
  void drain();
  /// The rest, then `last_words`. Nothing runs any more, so there is time, unless the user wants the end too: a signal
  /// (of the signalfd) or the end of the lifeline, or it is given up already.
  void finish(const std::string& last_words, int lifeline, int signals, bool given_up);

 private:
  struct Pipe {
    Descriptor fd;
    LineRelay relay;
    bool paused = false;
  };
  void add(Descriptor fd, LineRelay relay);
  void pump(Outlet& outlet, bool& blocked);
  bool wanted() const { return !given_up_ && !(output_.empty() && errors_.empty()); }
  void wait_for_reader(int lifeline, int signals);

  Watch& watch_;
  Outlet output_{STDOUT_FILENO}, errors_{STDERR_FILENO};
  bool output_blocked_ = false, errors_blocked_ = false, given_up_ = false;
  std::deque<Pipe> pipes_;  // two per rank
};

}  // namespace rondo::cli
