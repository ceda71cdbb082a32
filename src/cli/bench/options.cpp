#include "cli/bench/options.hpp"

#include <array>
#include <map>

#include "base/environment.hpp"
#include "cli/size.hpp"

namespace rondo::bench {

using cli::add_size;

namespace {

const std::map<std::string, Operation> operations{{"all_reduce", Operation::all_reduce},
                                                  {"reduce_scatter", Operation::reduce_scatter},
                                                  {"reduce_scatter_v", Operation::reduce_scatter_v},
                                                  {"reduce", Operation::reduce},
                                                  {"all_gather", Operation::all_gather},
                                                  {"all_gather_v", Operation::all_gather_v},
                                                  {"broadcast", Operation::broadcast},
                                                  {"gather", Operation::gather},
                                                  {"scatter", Operation::scatter},
                                                  {"all_to_all", Operation::all_to_all},
                                                  {"all_to_all_v", Operation::all_to_all_v},
                                                  {"send_recv", Operation::send_recv},
                                                  {"barrier", Operation::barrier}};
const std::map<std::string, Placement> placements{
    {"only", Placement::in_place}, {"no", Placement::out_of_place}, {"both", Placement::both}};

template <class T, size_t n>
std::map<std::string, T> by_name(const std::array<T, n>& values) {
  std::map<std::string, T> names;
  for (const T value : values) names.emplace(std::string(name_of(value)), value);
  return names;
}

template <size_t n>
std::vector<std::string> words(const std::array<std::string_view, n>& names) {
  return {names.begin(), names.end()};
}

// An option whose values have names; any other value is an error that lists them.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& flags, T& target,
                        const std::map<std::string, T>& names, const std::string& help) {
  const auto keys = [&] {
    std::vector<std::string> all;
    for (const auto& [name, value] : names) all.push_back(name);
    return all;
  }();
  return app
      .add_option_function<std::string>(
          flags, [&target, names](const std::string& name) { target = names.at(name); }, help)
      ->check(CLI::IsMember(keys));
}

}  // namespace

bool reduces(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter ||
         operation == Operation::reduce_scatter_v || operation == Operation::reduce;
}

bool is_rooted(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce ||
         operation == Operation::gather || operation == Operation::scatter;
}

std::optional<Placement> only_placement(Operation operation) {
  if (operation == Operation::broadcast || operation == Operation::barrier) return Placement::in_place;
  const bool exchanges = operation == Operation::all_to_all || operation == Operation::all_to_all_v ||
                         operation == Operation::send_recv;
  return exchanges ? std::optional(Placement::out_of_place) : std::nullopt;
}

double bus_factor(Operation operation, uint32_t world) {
  const double n = world;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * (n - 1) / n;
    case Operation::reduce_scatter:
    case Operation::reduce_scatter_v:
    case Operation::all_gather:
    case Operation::all_gather_v:
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
    case Operation::all_to_all_v:
      return (n - 1) / n;
    case Operation::broadcast:
    case Operation::reduce:
    case Operation::send_recv:
      return 1;
    case Operation::barrier:
      return 0;
  }
  return 0;
}

std::vector<uint64_t> BenchOptions::sizes() const {
  if (operation == Operation::barrier) return {0};
  std::vector<uint64_t> result;
  for (uint64_t size = from; size <= to;) {
    result.push_back(size);
    const auto next = uint64_t(double(size) * factor);
    size = next > size ? next : size + 1;
  }
  return result;
}

std::string BenchOptions::operation_name() const {
  for (const auto& [name, value] : operations)
    if (value == operation) return name;
  return "?";
}

void add_options(CLI::App& app, BenchOptions& o) {
  add_choice(app, "operation", o.operation, operations,
             "all_reduce, reduce_scatter(_v), reduce, all_gather(_v), broadcast, gather, scatter, "
             "all_to_all(_v), send_recv or barrier")
      ->required()
      ->option_text("OPERATION");
  app.add_option("-n,--ranks", o.ranks, "ranks to start here, unless a launcher already has")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_size(app, "-b,--min", o.from, "smallest size of the whole vector (8)");
  add_size(app, "-e,--max", o.to, "largest size (64M)");
  app.add_option("-f,--factor", o.factor, "each size is so many times the one before")
      ->check(CLI::Range(1.01, 1e6))
      ->capture_default_str();
  add_choice(app, "--type", o.type, by_name(all_data_types), "element type (f32)");
  auto reductions = by_name(all_reductions);
  std::erase_if(reductions, [](const auto& named) { return is_weighted(named.second); });
  add_choice(app, "--op", o.reduction, reductions, "reduction (sum)");
  app.add_option("--root", o.root, "root of a broadcast, reduce, gather or scatter")->capture_default_str();
  app.add_option("--transport", o.transport, "what carries the data: auto, tcp or shm; else RONDO_TRANSPORT")
      ->check(CLI::IsMember(words(transport_names)));
  app.add_option(
         "--algorithm", o.algorithm,
         "how the data travel: auto, or what the operation should run if it has it; else RONDO_ALGORITHM")
      ->check(CLI::IsMember(words(algorithm_names)));
  add_choice(app, "--in-place", o.placement, placements, "in place only, never, or both (both)");
  app.add_option(
         "--memory", o.memory,
         "where the buffers lie: private, or allocated (by rondo::allocate, so that peers can read it)")
      ->check(CLI::IsMember({"private", "allocated"}))
      ->capture_default_str();
  app.add_option("--iterations", o.iterations,
                 "timed iterations per size (default: for about a fifth of a second)")
      ->check(CLI::Range(1, 100'000'000));
  app.add_option("--warmup", o.warmup, "untimed iterations before them")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--timeout", o.timeout, "deadline of one operation in seconds")
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--json", o.json, "write the rows to FILE as well")->option_text("FILE");
  app.add_flag("--inject-wrong", o.inject_wrong,
               "flip one element before the check, which must then fail (exit 1)");
}

void check(const BenchOptions& o, bool starts_ranks) {
  if (o.from > o.to) throw CLI::ValidationError("-b", "the smallest size is larger than the largest (-e)");
  if (!(o.factor > 1)) throw CLI::ValidationError("-f", "the factor must be a number above 1");
  if (o.inject_wrong && o.operation == Operation::barrier)
    throw CLI::ValidationError("--inject-wrong", "a barrier has no data");
  if (!is_defined(o.type, o.reduction))
    throw CLI::ValidationError("--op", std::string(name_of(o.reduction)) + " is not defined for " +
                                           std::string(name_of(o.type)) + ": it is for " +
                                           (is_float(o.type) ? "integers" : "floats"));
  const auto only = only_placement(o.operation);
  if (only && o.placement != Placement::both && o.placement != *only)
    throw CLI::ValidationError(
        "--in-place",
        o.operation_name() +
            (only == Placement::in_place ? " has one buffer: it is always in place" : " is never in place"));
  if (starts_ranks && is_rooted(o.operation) && o.root >= o.ranks)
    throw CLI::ValidationError("--root", "there is no rank " + std::to_string(o.root) + " among " +
                                             std::to_string(o.ranks) + " ranks (-n)");
}

}  // namespace rondo::bench
