#include "cli/bench/measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/bench/data.hpp"
#include "cli/job_command.hpp"

namespace rondo::bench {

using cli::now_us;

namespace {

constexpr double target_us = 2e5;  // of the timed part of one point
constexpr uint64_t most_iterations = 100'000, fewest_iterations = 4;

}  // namespace

Result<Buffer> Buffer::make(const std::string& memory, size_t bytes) {
  Buffer buffer;
  if (memory == "private") {
    buffer.private_.reset(new std::byte[bytes]());
    return buffer;
  }
  auto allocated = allocate(bytes);
  if (!allocated) return allocated.error();
  buffer.allocated_ = std::move(*allocated);
  return buffer;
}

Result<Bench> Bench::make(Communicator& communicator, const BenchOptions& options) {
  const auto sizes = options.sizes();
  // The last rank of an all_to_all_v gets up to twice what it sends.
  const uint64_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  const uint64_t most = options.operation == Operation::all_to_all_v ? 2 * largest : largest;
  auto input = Buffer::make(options.memory, most + 1), output = Buffer::make(options.memory, most + 1);
  for (const auto* buffer : {&input, &output})
    if (!*buffer) return buffer->error();
  return Bench(communicator, options, std::move(*input), std::move(*output));
}

Bench::Bench(Communicator& communicator, const BenchOptions& options, Buffer input, Buffer output)
    : communicator_(communicator),
      options_(options),
      input_(std::move(input)),
      output_(std::move(output)),
      inject_(options.inject_wrong &&
              communicator.rank() == (is_rooted(options.operation) ? options.root : 0)) {}

// Both buffers count from the same origin in place: one that is a part lies at its place in the whole.
std::byte* Bench::input() {
  if (!in_place_) return input_.data();
  return output_.data() + place_.input(options_).first * size_of(options_.type);
}

std::byte* Bench::output() {
  return output_.data() + (in_place_ ? place_.output(options_).first * size_of(options_.type) : 0);
}

Result<void> Bench::once() {
  const auto& o = options_;
  Communicator& comm = communicator_;
  const uint64_t count = place_.count, each = count / place_.world;
  const Rank next = (place_.rank + 1) % place_.world,
             previous = (place_.rank + place_.world - 1) % place_.world;
  switch (o.operation) {
    case Operation::all_reduce:
      return comm.all_reduce(input(), output(), count, o.type, o.reduction);
    case Operation::reduce_scatter:
      return comm.reduce_scatter(input(), output(), count, o.type, o.reduction);
    case Operation::reduce_scatter_v:
      return comm.reduce_scatter_v(input(), output(), parts_, o.type, o.reduction);
    case Operation::reduce:
      return comm.reduce(input(), output(), count, o.type, o.reduction, o.root);
    case Operation::all_gather:
      return comm.all_gather(input(), output(), count, o.type);
    case Operation::all_gather_v:
      return comm.all_gather_v(input(), output(), parts_, o.type);
    case Operation::broadcast:
      return comm.broadcast(output(), count, o.type, o.root);
    case Operation::gather:
      return comm.gather(input(), output(), each, o.type, o.root);
    case Operation::scatter:
      return comm.scatter(input(), output(), each, o.type, o.root);
    case Operation::all_to_all:
      return comm.all_to_all(input(), output(), each, o.type);
    case Operation::all_to_all_v:
      return comm.all_to_all_v(input(), parts_, output(), received_, o.type);
    case Operation::send_recv:
      return comm.send_recv(input(), count, next, output(), count, previous, o.type);
    case Operation::barrier:
      return comm.barrier();
  }
  return {};
}

// Runs once on known data; returns how many elements are wrong on all ranks.
Result<uint64_t> Bench::checked(uint32_t round) {
  const auto& o = options_;
  std::byte* source = o.operation == Operation::broadcast ? output() : input();
  fill(source, place_.input(o), o.type, o.reduction, place_.rank, round);
  const uint64_t before = communicator_.counters().payload_bytes_sent;
  if (auto outcome = once(); !outcome) return outcome.error();
  payload_ = communicator_.counters().payload_bytes_sent - before;
  algorithm_ = communicator_.last_algorithm();
  if (inject_ && place_.output(o).count > 0) {
    output()[0] ^= std::byte{1};
    inject_ = false;
  }
  int64_t sums[] = {int64_t(count_wrong(output(), o, place_, round)), int64_t(payload_)};
  if (auto outcome = communicator_.all_reduce(std::span(sums)); !outcome) return outcome.error();
  payload_ = uint64_t(sums[1]);
  return uint64_t(sums[0]);
}

// The vector of so many bytes, or as much of it as can be cut into equal parts where that must be.
void Bench::set_size(uint64_t bytes, bool in_place) {
  const auto& o = options_;
  in_place_ = in_place;
  place_ = {bytes / size_of(o.type), communicator_.rank(), communicator_.world()};
  const bool even = o.operation == Operation::gather || o.operation == Operation::scatter ||
                    o.operation == Operation::all_to_all;
  if (even) place_.count -= place_.count % place_.world;
  parts_.clear();
  for (Rank rank = 0; rank < place_.world; rank++) parts_.push_back(place_.part(o, rank).count);
  received_.assign(place_.world, parts_[place_.rank]);
}

// Rank 0's choice, from what the warm-up showed.
Result<uint64_t> Bench::iterations() {
  double slowest = 0;
  uint64_t runs = std::max<uint64_t>(options_.warmup, 1);
  for (int64_t left = int64_t(runs); left > 0;) {
    const double began = now_us();
    for (; left > 0; left--)
      if (auto outcome = once(); !outcome) return outcome.error();
    slowest = (now_us() - began) / double(runs);
    // Too short to tell: as many again, four times over. Rank 0 decides.
    left = options_.iterations == 0 && slowest * double(runs) < target_us / 20 ? int64_t(4 * runs) : 0;
    int64_t agreed[] = {left};
    if (auto outcome = communicator_.broadcast(std::span(agreed)); !outcome) return outcome.error();
    left = agreed[0];
    if (left > 0) runs = uint64_t(left);
  }
  int64_t wanted[] = {int64_t(
      std::clamp(target_us / std::max(slowest, 0.01), double(fewest_iterations), double(most_iterations)))};
  if (options_.iterations > 0) wanted[0] = int64_t(options_.iterations);
  if (auto outcome = communicator_.broadcast(std::span(wanted)); !outcome) return outcome.error();
  return uint64_t(wanted[0]);
}

Result<std::vector<double>> Bench::timed() {
  // Zeros: in place, anything else would grow.
  std::memset(input_.data(), 0, place_.count * size_of(options_.type));
  std::memset(output_.data(), 0, place_.count * size_of(options_.type));
  auto runs = iterations();
  if (!runs) return runs.error();
  std::vector<double> times(*runs);
  if (auto outcome = communicator_.barrier(); !outcome) return outcome.error();
  double last = now_us();
  for (double& time : times) {
    if (auto outcome = once(); !outcome) return outcome.error();
    const double now = now_us();
    time = now - last;
    last = now;
  }
  if (auto outcome = communicator_.all_reduce(std::span(times), Reduction::max); !outcome)
    return outcome.error();
  std::sort(times.begin(), times.end());
  return times;
}

Result<Row> Bench::point(uint64_t bytes, bool in_place) {
  set_size(bytes, in_place);
  auto wrong_before = checked(1);
  if (!wrong_before) return wrong_before.error();
  const uint64_t payload = payload_;
  auto times = timed();
  if (!times) return times.error();
  auto wrong_after = checked(2);
  if (!wrong_after) return wrong_after.error();
  const size_t n = times->size();
  const auto at = [&](size_t i) { return (*times)[i]; };
  return Row{.bytes = place_.count * size_of(options_.type),
             .count = place_.count,
             .algorithm = algorithm_,
             .in_place = in_place,
             .iterations = n,
             .median_us = n % 2 == 1 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) / 2,
             .p99_us = at(std::min(n - 1, size_t(std::ceil(0.99 * double(n))) - 1)),
             .min_us = at(0),
             .wrong = *wrong_before + *wrong_after,
             .payload_bytes_all_ranks = payload};
}

}  // namespace rondo::bench
