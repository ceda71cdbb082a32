// All that a rank has learned: the same bits on every rank after the same step.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "optimizer.hpp"

namespace trainer {

struct State {
  State(const ParameterMap& map, const AdamW<float>::Settings& settings)
      : parameters(map.size()), adamw(map, settings) {}

  Buffer<float> parameters;
  AdamW<float> adamw;
  uint64_t steps = 0;  // that are done
  bool begun = false;  // it has been found to be the same on all ranks

  /// For another rank: parameters, m, v.
  std::vector<float> pack() const;
  /// Becomes what `packed` was after `steps_done` steps.
  void unpack(std::span<const float> packed, uint64_t steps_done);
  /// Of parameters and optimizer.
  std::string digest() const;
};

}  // namespace trainer
