#include "cli/bench/report.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace rondo::bench {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string columns(const BenchOptions& o, uint32_t world, const Row* row) {
  if (row == nullptr) return fmt::format("{:>10} {:>8} {:>8} {:>8}", "-", "-", "-", "-");
  return fmt::format("{:>10.2f} {:>8.3f} {:>8.3f} {:>8}", row->median_us, row->algbw_GBps(),
                     row->algbw_GBps() * bus_factor(o.operation, world), row->wrong);
}

double mean_bus_bandwidth(const BenchOptions& o, uint32_t world, const std::vector<Row>& rows) {
  double sum = 0;
  for (const Row& row : rows) sum += row.algbw_GBps() * bus_factor(o.operation, world);
  return rows.empty() ? 0 : sum / double(rows.size());
}

}  // namespace

void print_head(const BenchOptions& o, uint32_t world, std::string_view transport) {
  fmt::print("# rondo {}: {} on {} ranks over {}, {} memory, {}\n", RONDO_VERSION, o.operation_name(), world,
             transport, o.memory, cpu_name());
  fmt::print(
      "# size    bytes of the whole vector: all of a rank's data in all_reduce, reduce, broadcast and "
      "send_recv, the\n");
  fmt::print(
      "#         larger buffer of reduce_scatter, all_gather, gather and scatter, either of an all_to_all\n");
  fmt::print("# time    us of one operation: the slowest rank's, then the median over iterations\n");
  fmt::print("# algbw   size / time in GB/s (1e9);  busbw: algbw * {:.4g}, comparable between world sizes\n",
             bus_factor(o.operation, world));
  fmt::print(
      "# wrong   elements on all ranks that were not exactly what they must be, of two checked runs\n");
  fmt::print("#\n# {:>10} {:>12} {:>5} {:>6} {:>5} {:>13} | out of place:{:23} | in place:\n", "", "", "", "",
             "", "", "");
  fmt::print(
      "# {:>10} {:>12} {:>5} {:>6} {:>5} {:>13} | {:>10} {:>8} {:>8} {:>8} | {:>10} {:>8} {:>8} {:>8}\n",
      "size", "count", "type", "op", "root", "algorithm", "time", "algbw", "busbw", "wrong", "time", "algbw",
      "busbw", "wrong");
  std::fflush(stdout);
}

void print_row(const BenchOptions& o, uint32_t world, const Row* out_of_place, const Row* in_place) {
  const Row& any = in_place != nullptr ? *in_place : *out_of_place;
  const std::string root = is_rooted(o.operation) ? std::to_string(o.root) : "-";
  fmt::print("{:>12} {:>12} {:>5} {:>6} {:>5} {:>13} | {} | {}\n", any.bytes, any.count, name_of(o.type),
             reduces(o.operation) ? name_of(o.reduction) : "-", root, any.algorithm,
             columns(o, world, out_of_place), columns(o, world, in_place));
  std::fflush(stdout);
}

void print_foot(const BenchOptions& o, uint32_t world, const std::vector<Row>& rows) {
  uint64_t wrong = 0;
  for (const Row& row : rows) wrong += row.wrong;
  fmt::print("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  fmt::print("# Avg bus bandwidth    : {:.4g}\n", mean_bus_bandwidth(o, world, rows));
  std::fflush(stdout);
}

Result<void> write_json(const BenchOptions& o, uint32_t world, std::string_view transport,
                        const std::vector<Row>& rows) {
  nlohmann::ordered_json out{
      {"rondo", RONDO_VERSION},
      {"operation", o.operation_name()},
      {"ranks", world},
      {"transport", transport},
      {"memory", o.memory},
      {"machine", {{"cpu", cpu_name()}, {"cores", std::thread::hardware_concurrency()}}},
      {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    out["rows"].push_back({{"bytes", row.bytes},
                           {"count", row.count},
                           {"type", name_of(o.type)},
                           {"reduction", reduces(o.operation) ? name_of(o.reduction) : "none"},
                           {"root", o.root},
                           {"algorithm", row.algorithm},
                           {"in_place", row.in_place},
                           {"iterations", row.iterations},
                           {"median_us", row.median_us},
                           {"p99_us", row.p99_us},
                           {"min_us", row.min_us},
                           {"algbw_GBps", row.algbw_GBps()},
                           {"busbw_GBps", row.algbw_GBps() * bus_factor(o.operation, world)},
                           {"wrong", row.wrong},
                           {"payload_bytes_all_ranks", row.payload_bytes_all_ranks}});
  }
  std::ofstream file(o.json);
  file << out.dump(2) << "\n";
  file.close();
  if (!file)
    return Error{ErrorCode::system, fmt::format("cannot write {}: {}", o.json, std::strerror(errno))};
  return {};
}

}  // namespace rondo::bench
