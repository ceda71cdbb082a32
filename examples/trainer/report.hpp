// What rank 0 shows and leaves behind: progress lines, log.jsonl, loss.svg, sample.txt.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "json_lines.hpp"
#include "log.hpp"
#include "rondo/result.hpp"

namespace trainer {

class Report {
 public:
  /// Makes the folder and starts the log, so that a folder nobody may write to is known before the training.
  static rondo::Result<Report> create(const std::string& folder, uint64_t steps);

  /// Logs the step; prints a line at most once a second, and for the first and last step.
  rondo::Result<void> step(const StepLine& line);
  rondo::Result<void> final(const FinalLine& line);
  rondo::Result<void> sample(const std::string& text);
  /// Draws the losses so far.
  rondo::Result<void> plot() const;

 private:
  Report(std::string folder, uint64_t steps, JsonLines log)
      : folder_(std::move(folder)), steps_(steps), log_(std::move(log)) {}
  std::string path(const char* name) const { return folder_ + "/" + name; }

  std::string folder_;
  uint64_t steps_;
  JsonLines log_;
  std::vector<double> losses_;
  std::optional<double> held_out_loss_;
  std::chrono::steady_clock::time_point printed_{};
};

/// 4298239 as "4,298,239".
std::string grouped(uint64_t number);

}  // namespace trainer
