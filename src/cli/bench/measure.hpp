// Times one operation at one size on the ranks of a communicator, and checks its data.
#pragma once
#include <memory>
#include <vector>

#include "cli/bench/options.hpp"

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

class Bench {
 public:
  Bench(Communicator& communicator, const BenchOptions& options);
  /// Collective. A time is the slowest rank's of an iteration; the median over iterations is reported.
  Result<Row> point(uint64_t bytes, bool in_place);

 private:
  Result<void> once();
  Result<uint64_t> checked(uint32_t round);
  Result<std::vector<double>> timed();
  Result<uint64_t> iterations();
  std::byte* whole() { return in_place_ ? output_.get() : input_.get(); }

  Communicator& communicator_;
  const BenchOptions& options_;
  std::unique_ptr<std::byte[]> input_, output_;
  uint64_t count_ = 0, payload_ = 0;
  std::string_view algorithm_;
  bool in_place_ = false;
  bool inject_;
};

}  // namespace rondo::bench
