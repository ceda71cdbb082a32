// The lines of the training log, log.jsonl: one per step, one with "shrunk" or "grown": true wherever the number
// of ranks changed, and a last one with "final": true.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace trainer {

struct StepLine {
  uint64_t step;        // from 1
  double loss;          // nats per byte, the step's mean over all ranks
  double tokens_per_s;  // of all ranks together
  // Of the step's time on rank 0, the part in which it did nothing but wait for communication: for slower
  // ranks too, but not for what went on while it computed.
  double communication_share;
};

// Ranks were lost, and the others go on; or newcomers were taken in.
enum class Change : uint8_t { shrunk, grown };
struct ChangeLine {
  Change change;
  uint64_t step;   // the first that they do, maybe once more
  uint32_t ranks;  // that there are now
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

nlohmann::ordered_json json_of(const StepLine& line);
nlohmann::ordered_json json_of(const ChangeLine& line);
nlohmann::ordered_json json_of(const FinalLine& line);

/// What a log tells a rank that would go on with it.
struct Logged {
  std::map<uint64_t, double> losses;  // by step
  std::vector<uint32_t> shrunk_to;    // ranks
  bool finished = false;
  uint64_t steps() const { return losses.empty() ? 0 : losses.rbegin()->first; }
};
/// Nothing if there is no such file, or nobody has written to it since then. A line that is not whole is passed over.
Logged read_log(const std::string& path, std::filesystem::file_time_type since);

}  // namespace trainer
