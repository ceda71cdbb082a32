// What rank 0 shows and leaves behind: progress lines, log.jsonl, loss.svg, sample.txt. The others take notes, so that
// one of them can go on with it when rank 0 is lost.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "json_lines.hpp"
#include "log.hpp"
#include "rondo/result.hpp"

namespace trainer {

/// What the log says so far. Ranks hand it to each other as bytes.
using Note = std::variant<StepLine, ChangeLine>;
static_assert(std::is_trivially_copyable_v<Note>);

class Report {
 public:
  /// One that only takes notes.
  Report(std::string folder, uint64_t steps) : folder_(std::move(folder)), steps_(steps) {}
  /// One that writes from the start, so that a folder nobody may write to is known before the training.
  static rondo::Result<Report> create(const std::string& folder, uint64_t steps);
  /// From now on it writes: makes the folder, and the log from what was noted so far. The log of a rank that wrote before
  /// is replaced as a whole: that rank may have been ahead, or have stopped in the middle of a line.
  rondo::Result<void> take_over();
  bool writes() const { return log_.has_value(); }
  std::string log_path() const { return path("log.jsonl"); }
  const std::vector<Note>& notes() const { return notes_; }
  /// Those of another rank, which has seen more; a log is written anew.
  rondo::Result<void> replace_notes(std::vector<Note> notes);

  /// Logs the step; prints a line at most once a second, and for the first and last step.
  rondo::Result<void> step(const StepLine& line);
  rondo::Result<void> changed(const ChangeLine& line);
  /// The results. The log's last line comes last: where it stands, the others are whole.
  rondo::Result<void> final(const FinalLine& line, const std::string& sample);
  /// Draws the losses so far.
  rondo::Result<void> plot() const;

 private:
  std::string path(const char* name) const { return folder_ + "/" + name; }

  std::string folder_;
  uint64_t steps_;
  std::optional<JsonLines> log_;
  std::vector<Note> notes_;
  std::optional<double> held_out_loss_;
  std::chrono::steady_clock::time_point printed_{};
};

/// 4298239 as "4,298,239".
std::string grouped(uint64_t number);

}  // namespace trainer
