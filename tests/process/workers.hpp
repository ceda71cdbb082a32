// The ranks of one job, each a process started by the test itself, so that it knows which is which and no
// launcher ends the others.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../text.hpp"
#include "command.hpp"

namespace rondo::test {

/// What a worker says of an error.
struct Report {
  double at, took;  // seconds
  std::string code;
  int peer;  // -1: none
  std::string text;
};
/// The first with this label in a worker's output.
std::optional<Report> report(const Ended& ended, const std::string& label);
/// The number after the label in a worker's output; -1: there is none.
double number_after(const Ended& ended, const std::string& label);
/// On the clock of the reports.
double seconds_now();

class Workers {
 public:
  struct Job {
    uint32_t world;
    std::string transport = "auto";
    std::vector<std::string> arguments;              // of the worker
    std::vector<std::string> environment = {};       // of every rank
    std::vector<std::vector<std::string>> own = {};  // of each rank, where there are any
    std::string limits = {};                         // a shell command before it, such as "ulimit -n 64"
    std::string program = WORKER_EXE;
  };
  explicit Workers(const Job& job);
  uint32_t world() const { return uint32_t(ranks_.size()); }
  Command& operator[](uint32_t rank) { return *ranks_[rank]; }
  bool all_say(const std::string& text, double limit_s = 10);
  /// Of all, or of all but one.
  std::vector<Ended> wait(int but = -1, double limit_s = 20);

 private:
  std::vector<std::unique_ptr<Command>> ranks_;
};

/// The combinations that the failures are tried in: "tcp" and "shm", 2, 4 and 8 ranks, one of which fails.
struct Situation {
  std::string transport;
  uint32_t world, victim;
};
std::vector<Situation> situations();

}  // namespace rondo::test
