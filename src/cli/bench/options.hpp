// What `rondo bench` was asked to do.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rondo/rondo.hpp"

namespace rondo::bench {

/// Of the uneven ones (..._v) rank r has the r + 1st of 1 + 2 + .. + N shares. A send_recv goes around the ring
/// of ranks.
enum class Operation : uint8_t {
  all_reduce,
  reduce_scatter,
  reduce_scatter_v,
  reduce,
  all_gather,
  all_gather_v,
  broadcast,
  gather,
  scatter,
  all_to_all,
  all_to_all_v,
  send_recv,
  barrier,
};
enum class Placement : uint8_t { out_of_place, in_place, both };

struct BenchOptions {
  Operation operation = Operation::all_reduce;
  uint32_t ranks = 2;
  uint64_t from = 8, to = uint64_t(64) << 20;  // bytes of the whole vector
  double factor = 2;
  DataType type = DataType::f32;
  Reduction reduction = Reduction::sum;
  Rank root = 0;
  std::string transport, algorithm;  // empty: RONDO_TRANSPORT, RONDO_ALGORITHM
  std::string memory = "private", json;
  Placement placement = Placement::both;
  uint64_t iterations = 0, warmup = 5;  // 0 iterations: as many as fit a fraction of a second
  std::optional<double> timeout;        // seconds, of one operation
  bool inject_wrong = false;

  std::vector<uint64_t> sizes() const;
  std::string operation_name() const;
};

bool reduces(Operation operation);
bool is_rooted(Operation operation);
/// Of an operation with one buffer, or one that is never in place.
std::optional<Placement> only_placement(Operation operation);
/// Bus bandwidth over algorithm bandwidth, as nccl-tests defines it (doc/PERFORMANCE.md there).
double bus_factor(Operation operation, uint32_t world);
/// Adds the arguments to `app`; a bad value is a CLI error that lists what is allowed.
void add_options(CLI::App& app, BenchOptions& options);
/// A CLI error where the options do not go together; `starts_ranks`: no launcher has.
void check(const BenchOptions& options, bool starts_ranks);

}  // namespace rondo::bench
