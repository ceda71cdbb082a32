// The whole job of one rank: load, agree with the others, train, evaluate, and (rank 0) write down.
#pragma once
#include <cstdint>
#include <string>

#include "gemm.hpp"
#include "images.hpp"
#include "learner.hpp"
#include "rondo/communicator.hpp"

namespace mlp {

struct TrainOptions {
  Settings settings;  // but rank and world, which the communicator knows
  int hidden = 128;
  std::string data = fashion_mnist, out = "out", transport;
};

/// Collective: every rank calls it with the same options (checked).
rondo::Result<void> train(rondo::Communicator& communicator, const TrainOptions& options,
                          trainer::Gemm<float> gemm);

}  // namespace mlp
