// A table of measured choices, which `rondo tune` writes and rank 0 reads: what an operation runs up to which
// size.
//
//   # rondo tuning: 4 ranks, tcp
//   all_reduce 16384 one_shot
//   all_reduce max ring
//
// A line is an operation, the largest size of the whole vector in bytes that it is for, and an algorithm; the
// first line of an operation that is large enough counts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "rondo/result.hpp"
#include "schedule/step.hpp"

namespace rondo::engine {

class Tuning {
 public:
  /// The job that it was measured in.
  struct Situation {
    uint32_t world = 0;
    std::string transport;
    friend bool operator==(const Situation&, const Situation&) = default;
  };
  struct Line {
    schedule::Operation operation;
    uint64_t most;  // bytes; UINT64_MAX: any
    schedule::Algorithm algorithm;
    friend bool operator==(const Line&, const Line&) = default;
  };

  static constexpr size_t longest_text = 32 << 10;

  Tuning() = default;
  Tuning(const Situation& situation, std::vector<Line> lines)
      : situation_(situation), lines_(std::move(lines)) {}
  /// Errors: invalid_argument, with the number of the line that is wrong.
  static Result<Tuning> parse(const std::string& text);
  std::string text() const;

  const Situation& situation() const noexcept { return situation_; }
  const std::vector<Line>& lines() const noexcept { return lines_; }
  std::optional<schedule::Algorithm> find(schedule::Operation operation, uint64_t bytes) const noexcept;

 private:
  Situation situation_;
  std::vector<Line> lines_;
};

/// Errors: invalid_argument, naming the file.
Result<Tuning> read_tuning(const std::string& path);

}  // namespace rondo::engine
