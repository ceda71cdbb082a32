// The training log: one JSON object per line, the last one with "final": true.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "rondo/result.hpp"

namespace trainer {

struct StepLine {
  uint64_t step;               // from 1
  double loss;                 // nats per byte, the step's mean over all ranks
  double tokens_per_s;         // of all ranks together
  double communication_share;  // of the step's time on rank 0, waiting for slower ranks included
};

struct FinalLine {
  double held_out_loss;  // nats per byte
  uint64_t steps;
  uint32_t ranks;
  size_t parameters;
  double seconds;  // of the training steps
  std::string data_sha256;
  std::string transport;  // what carried the gradients
};

class Log {
 public:
  /// Starts an empty file.
  static rondo::Result<Log> create(const std::string& path);
  rondo::Result<void> write(const StepLine& line);
  rondo::Result<void> write(const FinalLine& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Log(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  rondo::Result<void> write_line(const std::string& line);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Replaces the file's content.
rondo::Result<void> write_file(const std::string& path, const std::string& content);

}  // namespace trainer
