#include "cli/tune.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <utility>

#include "base/environment.hpp"
#include "cli/job_command.hpp"
#include "cli/size.hpp"
#include "engine/tuning.hpp"
#include "rondo/rondo.hpp"
#include "schedule/catalogue.hpp"

namespace rondo::cli {
namespace {

using engine::Tuning;
using schedule::Algorithm;
using schedule::Operation;

// Those for which there is a choice. Gathers, scatters and exchanges have one algorithm each.
constexpr std::array tuned{Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                           Operation::broadcast,  Operation::reduce,         Operation::barrier};
constexpr const char* command = "rondo tune";
constexpr double target_us = 6e4;  // of the timed part of one point
constexpr int passes = 6;
// The next size keeps what the one before it runs unless something is quicker by more than noise.
constexpr double worth_changing = 0.95;

using Measured = std::pair<double, Algorithm>;  // us

struct Given {
  uint32_t ranks = 2;
  uint64_t largest = uint64_t(16) << 20;
  std::string transport, output = "rondo.tuning";
};

// On every rank alike.
class Tuner {
 public:
  Tuner(Communicator& comm, uint64_t largest)
      : comm_(comm), largest_(largest), input_(largest / 4 + 1), output_(largest / 4 + 1) {}

  Result<std::vector<Tuning::Line>> run() {
    std::vector<Tuning::Line> lines;
    for (const Operation operation : tuned)
      if (auto added = tune(operation, lines); !added) return added.error();
    return lines;
  }

 private:
  Result<void> once(Operation operation, size_t count, const CallOptions& call) {
    const Extent own = comm_.shard(count);
    const auto in = std::span<const float>(input_).first(count);
    const auto out = std::span(output_).first(count);
    switch (operation) {
      case Operation::all_reduce:
        return comm_.all_reduce(in, out, Reduction::sum, call);
      case Operation::reduce_scatter:
        return comm_.reduce_scatter(in, out.first(own.count), Reduction::sum, call);
      case Operation::all_gather:
        return comm_.all_gather(in.first(own.count), out, call);
      case Operation::broadcast:
        return comm_.broadcast(out, next_root(), call);
      case Operation::reduce:
        return comm_.reduce(in, out, Reduction::sum, next_root(), call);
      case Operation::barrier:
        return comm_.barrier(call);
      case Operation::gather:
      case Operation::scatter:
      case Operation::all_to_all:
      case Operation::send_recv:
        break;
    }
    return {};
  }

  // Roots take turns, so that no call begins before the one before it has come to its root.
  Rank next_root() { return root_ = (root_ + 1) % comm_.world(); }

  static CallOptions with(Algorithm algorithm) {
    return {.timeout = {}, .weight = 1, .algorithm = name_of(algorithm), .reproducible = false};
  }

  // How often one pass repeats it; the same on every rank.
  Result<size_t> repetitions(Operation operation, size_t count, Algorithm algorithm) {
    const CallOptions call = with(algorithm);
    double first = 0;
    for (int warmup = 0; warmup < 3; warmup++) {
      const double began = now_us();
      if (auto done = once(operation, count, call); !done) return done.error();
      first = now_us() - began;
    }
    int64_t runs[] = {int64_t(std::clamp(target_us / passes / std::max(first, 0.1), 2.0, 500.0))};
    if (auto agreed = comm_.broadcast(std::span(runs)); !agreed) return agreed.error();
    return size_t(runs[0]);
  }

  // The median over iterations of the slowest rank's time.
  Result<double> time(Operation operation, size_t count, Algorithm algorithm, size_t runs) {
    const CallOptions call = with(algorithm);
    std::vector<double> times(runs);
    if (auto together = comm_.barrier(); !together) return together.error();
    double last = now_us();
    for (double& time : times) {
      if (auto done = once(operation, count, call); !done) return done.error();
      const double now = now_us();
      time = now - std::exchange(last, now);
    }
    if (auto slowest = comm_.all_reduce(std::span(times), Reduction::max); !slowest) return slowest.error();
    std::ranges::nth_element(times, times.begin() + ptrdiff_t(times.size() / 2));
    return times[times.size() / 2];
  }

  // The algorithms take turns, and the best pass of each counts: other work on the machine only ever adds.
  Result<std::vector<Measured>> measure(Operation operation, size_t count) {
    std::vector<Measured> all;
    std::vector<size_t> runs;
    for (const schedule::Schedule& schedule : schedule::catalogue()) {
      if (schedule.operation != operation) continue;
      const auto often = repetitions(operation, count, schedule.algorithm);
      if (!often) return often.error();
      all.push_back({std::numeric_limits<double>::infinity(), schedule.algorithm});
      runs.push_back(*often);
    }
    for (int pass = 0; pass < passes; pass++)
      for (size_t i = 0; i < all.size(); i++) {
        const auto taken = time(operation, count, all[i].second, runs[i]);
        if (!taken) return taken.error();
        all[i].first = std::min(all[i].first, *taken);
      }
    return all;
  }

  // Every rank concludes the same from the same times.
  Result<void> tune(Operation operation, std::vector<Tuning::Line>& lines) {
    std::optional<Algorithm> before;
    for (uint64_t bytes = 8; bytes <= largest_; bytes *= 4) {
      const size_t count = operation == Operation::barrier ? 0 : bytes / 4;
      const auto measured = measure(operation, count);
      if (!measured) return measured.error();
      auto best = *std::ranges::min_element(*measured);
      const auto kept =
          std::ranges::find(*measured, before, [](const auto& m) { return std::optional(m.second); });
      if (kept != measured->end() && best.first > worth_changing * kept->first) best = *kept;
      print_row(operation, bytes, *measured, best.second);
      // Between this size and the one before it, their geometric mean is the border.
      if (before && before != best.second) lines.push_back({operation, bytes / 2, *before});
      before = best.second;
      if (operation == Operation::barrier) break;
    }
    lines.push_back({operation, UINT64_MAX, *before});
    return {};
  }

  void print_row(Operation operation, uint64_t bytes, const std::vector<Measured>& measured,
                 Algorithm best) const {
    if (comm_.rank() != 0) return;
    fmt::print("{:>14} {:>9} ", name_of(operation), operation == Operation::barrier ? 0 : bytes);
    for (const auto& [us, algorithm] : measured)
      fmt::print("  {}{} {:.1f}", algorithm == best ? "*" : "", name_of(algorithm), us);
    fmt::print("\n");
    std::fflush(stdout);
  }

  Communicator& comm_;
  uint64_t largest_;
  std::vector<float> input_, output_;
  Rank root_ = 0;
};

Error cannot_write(const std::string& path) {
  return {ErrorCode::system, fmt::format("cannot write {}: {}", path, std::strerror(errno))};
}

// Leaves no file behind; errno says why not.
bool can_write(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return ::access(path.c_str(), W_OK) == 0 ||
         (errno == ENOENT && ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0);
}

int run_rank(const Given& given) {
  Options options;
  options.transport = given.transport;
  auto comm = Communicator::from_environment(options);
  if (!comm) return report(command, comm.error());
  const bool speaks = comm->rank() == 0;
  // Before the minutes that it takes.
  if (speaks && !can_write(given.output)) return report(command, cannot_write(given.output));
  if (speaks)
    fmt::print("# {} ranks, {}: us of f32 operations by algorithm, the chosen with a star\n", comm->world(),
               comm->transport());
  auto lines = Tuner(*comm, given.largest).run();
  if (!lines) return report(command, lines.error());
  if (!speaks) return 0;
  std::ofstream file(given.output);
  file << Tuning({comm->world(), std::string(comm->transport())}, std::move(*lines)).text();
  file.close();
  if (!file) return report(command, cannot_write(given.output));
  fmt::print("# written: {}; use it with RONDO_TUNING={}\n", given.output, given.output);
  return 0;
}

}  // namespace

CLI::App* add_tune(CLI::App& app, const std::vector<std::string>& arguments, std::function<int()>& action) {
  const auto given = std::make_shared<Given>();
  CLI::App* tune = app.add_subcommand("tune", "Measure every algorithm and write down the quickest");
  tune->add_option("-n,--ranks", given->ranks, "ranks to start here, unless a launcher already has")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_size(*tune, "-e,--max", given->largest, "largest size of the whole vector (16M)");
  tune->add_option("--transport", given->transport, "auto, tcp or shm; else RONDO_TRANSPORT")
      ->check(CLI::IsMember(std::vector<std::string>(transport_names.begin(), transport_names.end())));
  tune->add_option("-o,--output", given->output, "the file to write")->capture_default_str();
  tune->callback([given, arguments, &action] {
    if (given->largest < 8 || given->largest > uint64_t(1) << 32)
      throw CLI::ValidationError("--max", fmt::format("{} bytes are not in 8 to 4G", given->largest));
    action = [given, arguments] {
      if (is_rank(process_environment)) return run_rank(*given);
      return start_ranks(command, given->ranks, arguments);
    };
  });
  return tune;
}

}  // namespace rondo::cli
