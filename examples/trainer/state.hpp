// All that a rank has learned: the same bits on every rank after the same step.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "log.hpp"
#include "optimizer.hpp"

namespace trainer {

struct State {
  State(const ParameterMap& map, const AdamW<float>::Settings& settings)
      : parameters(map.size()), adamw(map, settings) {}

  Buffer<float> parameters;
  AdamW<float> adamw;
  uint64_t steps = 0;  // that are done
  StepLine last{};     // what the last of them came to

  /// As numbers for another rank.
  struct Packed {
    std::vector<float> values;     // parameters, m, v
    std::array<double, 4> line{};  // last
  };
  Packed pack() const;
  /// Becomes what `packed` was after `steps_done` steps.
  void unpack(const Packed& packed, uint64_t steps_done);
  /// Of parameters and optimizer.
  std::string digest() const;
};

}  // namespace trainer
