// What a call may be given beside its buffers, and what is counted of all calls.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rondo {

/// Per-call settings.
struct CallOptions {
  std::optional<std::chrono::milliseconds> timeout = {};  ///< of this call; else the communicator's
  /// This rank's weight in a premul_sum or a weighted_avg; may differ between ranks. Finite; of a weighted_avg at
  /// least 0; of integers a whole number up to 2^53 in magnitude.
  double weight = 1;
  /// What to run, as "ring" (docs/algorithms.md lists what each operation has). The same on every rank; else
  /// RONDO_ALGORITHM of rank 0, else what is quickest. One that cannot do what the call asks for is refused.
  std::string_view algorithm = {};
  /// Sum in the order of the canonical tree (docs/numerics.md): the same bits whatever the count, the split into
  /// calls, the algorithm and the transport. The same on every rank; else the communicator's.
  std::optional<bool> reproducible = {};
  /// A number of the caller's, such as that of a gradient bucket. The same on every rank: calls that look alike but
  /// have different tags are a mismatch, where without tags the data of one would be taken for that of the other.
  uint64_t tag = 0;
};

/// One of the vectors of a group: output[i] = reduction over ranks of input[i], in place where they are equal.
struct Tensor {
  const void* input;
  void* output;
  size_t count;  ///< elements
};

/// What this rank has sent in all operations that have ended (and maybe more) since its communicator was
/// made; readable at any time, also during an operation. Payload is user data (or partials of it); headers
/// are all that Rondo adds. A full-width ring all-reduce of m bytes sends exactly 2(N-1)m payload bytes over
/// all ranks.
struct Counters {
  uint64_t operations = 0, payload_bytes_sent = 0, header_bytes_sent = 0;
};

}  // namespace rondo
