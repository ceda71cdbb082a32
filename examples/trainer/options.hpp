// What the command line says.
#pragma once
#include <cstdint>
#include <string>
#include <variant>

#include "parameters.hpp"

namespace trainer {

struct TrainOptions {
  uint64_t steps = 900, seed = 1, sequences = 32, warmup = 50;
  uint32_t micro_batches = 1, buckets = 1;
  ModelShape shape;
  double learning_rate = 0.006, weight_decay = 0.1, clip = 1;
  std::string optimizer = "adamw", data, out = "out", transport, record;
  bool elastic = false;

  /// Every option on which the ranks must agree, in words.
  std::string agreed() const;
};

/// The options, or the code to exit with when help was asked for (0) or something is wrong (2); the text is
/// then already printed.
std::variant<TrainOptions, int> parse(int argc, const char* const* argv);

}  // namespace trainer
