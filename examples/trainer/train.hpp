// The whole job of one rank: load, agree with the others, train, evaluate, and (rank 0) write down.
#pragma once
#include <atomic>

#include "gemm.hpp"
#include "options.hpp"
#include "rondo/communicator.hpp"
#include "rondo/result.hpp"

namespace trainer {

enum class Outcome : uint8_t { finished, interrupted };

/// Collective: every rank calls it with the same options (checked). When `interrupt` is no longer 0 on
/// some rank, all stop after the step under way; rank 0 then leaves the log and the plot up to there. An elastic
/// training goes on when ranks are lost, and takes newcomers in (elastic.hpp): the communicator is then another one, of
/// the ranks that there are, and its rank 0 is the one that writes.
rondo::Result<Outcome> train(rondo::Communicator& communicator, const TrainOptions& options, Gemm<float> gemm,
                             const std::atomic<int>& interrupt);

}  // namespace trainer
