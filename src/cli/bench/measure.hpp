// Times one operation at one size on the ranks of a communicator, and checks its data.
#pragma once
#include <memory>
#include <vector>

#include "cli/bench/data.hpp"

namespace rondo::bench {

/// One measured point; the same on every rank.
struct Row {
  uint64_t bytes, count;
  std::string_view algorithm;
  bool in_place;
  uint64_t iterations;
  double median_us, p99_us, min_us;
  uint64_t wrong, payload_bytes_all_ranks;

  double algbw_GBps() const { return median_us > 0 ? double(bytes) / median_us * 1e-3 : 0; }
};

/// Zeroed memory of the kind that was asked for.
class Buffer {
 public:
  /// Errors: system.
  static Result<Buffer> make(const std::string& memory, size_t bytes);
  std::byte* data() noexcept { return allocated_.size() > 0 ? allocated_.data() : private_.get(); }

 private:
  std::unique_ptr<std::byte[]> private_;
  Memory allocated_;
};

class Bench {
 public:
  /// Errors: system, where the buffers cannot be had.
  static Result<Bench> make(Communicator& communicator, const BenchOptions& options);
  /// Collective. A time is the slowest rank's of an iteration; the median over iterations is reported.
  Result<Row> point(uint64_t bytes, bool in_place);

 private:
  Bench(Communicator& communicator, const BenchOptions& options, Buffer input, Buffer output);
  Result<void> once();
  Result<uint64_t> checked(uint32_t round);
  Result<std::vector<double>> timed();
  Result<uint64_t> iterations();
  void set_size(uint64_t bytes, bool in_place);
  std::byte* input();
  std::byte* output();

  Communicator& communicator_;
  const BenchOptions& options_;
  Buffer input_, output_;
  Place place_{};
  std::vector<size_t> parts_, received_;  // of uneven operations
  uint64_t payload_ = 0;
  std::string_view algorithm_;
  bool in_place_ = false;
  bool inject_;
};

}  // namespace rondo::bench
