#include "cli/bench/bench.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/environment.hpp"
#include "cli/bench/report.hpp"
#include "cli/job_command.hpp"

namespace rondo::cli {
namespace {

using bench::BenchOptions;
using bench::Placement;
using bench::Row;

constexpr const char* command = "rondo bench";

// The points of one size, out of place then in place, as far as they are wanted.
Result<std::vector<Row>> points(bench::Bench& bench, const BenchOptions& options, uint64_t bytes) {
  std::vector<Row> rows;
  const auto placement = bench::only_placement(options.operation).value_or(options.placement);
  for (const bool in_place : {false, true}) {
    if (placement == (in_place ? Placement::out_of_place : Placement::in_place)) continue;
    auto row = bench.point(bytes, in_place);
    if (!row) return row.error();
    rows.push_back(*row);
  }
  return rows;
}

int run_rank(const BenchOptions& options) {
  Options job;
  job.transport = options.transport;
  job.algorithm = options.algorithm;
  if (options.timeout) job.timeout = std::chrono::milliseconds(int64_t(*options.timeout * 1000));
  auto communicator = Communicator::from_environment(job);
  if (!communicator) return report(command, communicator.error());
  const bool speaks = communicator->rank() == 0;
  auto bench = bench::Bench::make(*communicator, options);
  if (!bench) return report(command, bench.error());
  std::vector<Row> all;
  if (speaks) print_head(options, communicator->world(), communicator->transport());
  for (const uint64_t bytes : options.sizes()) {
    auto rows = points(*bench, options, bytes);
    if (!rows) return report(command, rows.error());
    const Row* out = !rows->empty() && !rows->front().in_place ? &rows->front() : nullptr;
    const Row* in = !rows->empty() && rows->back().in_place ? &rows->back() : nullptr;
    if (speaks) print_row(options, communicator->world(), out, in);
    all.insert(all.end(), rows->begin(), rows->end());
  }
  uint64_t wrong = 0;
  for (const Row& row : all) wrong += row.wrong;
  if (speaks) {
    print_foot(options, communicator->world(), all);
    if (!options.json.empty())
      if (auto written = write_json(options, communicator->world(), communicator->transport(), all); !written)
        return report(command, written.error());
  }
  return wrong == 0 ? right : wrong_data;
}

}  // namespace

CLI::App* add_bench(CLI::App& app, const std::vector<std::string>& arguments, std::function<int()>& action) {
  CLI::App* bench = app.add_subcommand("bench", "time and check one operation over a range of sizes");
  auto options = std::make_shared<BenchOptions>();
  bench::add_options(*bench, *options);
  bench->callback([=, &action] {
    bench::check(*options, !is_rank(process_environment));
    action = [=] {
      return is_rank(process_environment) ? run_rank(*options)
                                          : start_ranks(command, options->ranks, arguments);
    };
  });
  return bench;
}

}  // namespace rondo::cli
