// The learning rate's course.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace trainer {

/// Linear warm-up, then half a cosine from `peak` down to a tenth of it at the last step.
struct LearningRate {
  double peak;
  uint64_t warmup, steps;

  double at(uint64_t step) const {
    if (step < warmup) return peak * double(step + 1) / double(warmup);
    const double left = double(std::max<uint64_t>(1, steps - std::min(steps, warmup)));
    const double part = std::min(1.0, double(step - warmup) / left);
    return peak * (0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * part)));
  }
};

}  // namespace trainer
