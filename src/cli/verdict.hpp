// What the launcher ends with: exit code and last words.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"

namespace rondo::cli {

/// "exit 7", "signal 9 (KILL)", of a wait status.
std::string describe_end(int status);
/// The exit code, or 128 + the signal.
int code_of(int status);

/// The first reason counts. 0 and no words where there is none.
class Verdict {
 public:
  explicit Verdict(std::string name) : name_(std::move(name)) {}
  /// No words: there is nobody to say them to.
  void settle(int code, const std::string& reason);
  /// A rank that is killed closes its connections just before its end can be seen here. One that notices and
  /// exits may then seem to have been first: a signal that comes within a moment of an exit is the cause.
  void rank_failed(size_t rank, int status);
  void add(const std::string& words) { words_ += name_ + ": " + words + "\n"; }

  int code() const { return code_; }
  const std::string& last_words() const { return words_; }

 private:
  const std::string name_;
  bool settled_ = false;
  std::optional<TimePoint> exit_named_at_;  // when a rank's exit became the reason
  int code_ = 0;
  std::string words_;
};

/// Where ranks may fail and the others go on. A rank that fails is left behind: what counts are those that remain.
/// The first that ends well shows who they are: from then on a failure is the job's.
///
///   rank 0   =====> exit 0            rank 0   == x                  rank 0  ===> exit 0
///   rank 1   == x                     rank 1   =====> exit 7         rank 1  ======> exit 7
///            0                                 7: none is left               7: it had remained
class Survival {
 public:
  /// Every end of a rank, in their order; `left`: the ranks that still run. What to say about it at once, or "".
  std::string ended(size_t rank, int status, size_t left);
  /// All have ended.
  void conclude(Verdict& verdict) const;

 private:
  struct Failure {
    size_t rank;
    int status;
  };
  bool well_ = false;  // some rank ended with 0
  std::optional<Failure> last_, counts_;
};

}  // namespace rondo::cli
