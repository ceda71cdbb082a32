#include "base/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/advertised.hpp"
#include "base/clock.hpp"
#include "base/fault.hpp"
#include "base/launcher.hpp"
#include "base/port_range.hpp"
#include "base/root_address.hpp"
#include "base/setting.hpp"
#include "base/text_file.hpp"

namespace rondo {
namespace {

constexpr double longest_timeout_s = 1e6;
constexpr size_t longest_secret = 4096;
constexpr milliseconds default_init_timeout{60'000}, default_timeout{300'000}, default_heartbeat{10'000};

Result<milliseconds> seconds(const Setting& setting) {
  double number = 0;
  const char* const last = setting.value.data() + setting.value.size();
  const auto [end, error] = std::from_chars(setting.value.data(), last, number);
  if (error != std::errc() || end != last || !(number >= 0.001 && number <= longest_timeout_s))
    return invalid(setting, "must be a number of seconds from 0.001 to 1000000");
  return milliseconds(std::llround(number * 1000));
}

Result<void> one_of(const Setting& setting, std::span<const std::string_view> allowed) {
  std::string list;
  for (const auto word : allowed) {
    if (setting.value == word) return {};
    if (!list.empty()) list += ", ";
    list += word;
  }
  return invalid(setting, "must be one of: " + list);
}

Result<std::string> secret_from(const Setting& file) {
  auto read = read_text(file.value, longest_secret);
  if (!read) return invalid(file, read.error().message);
  std::string secret = std::move(*read);
  while (!secret.empty() && std::strchr(" \t\r\n", secret.back())) secret.pop_back();
  if (secret.empty()) return invalid(file, "the file is empty");
  return secret;
}

// Where rank, world and the rest came from, so that a complaint names the variable to change.
constexpr std::string_view no_launcher =
    "start the program with rondo run, torchrun, mpirun or srun, or set it";
struct Sources {
  std::string rank = "Options::rank", world = "Options::world", root = "Options::root",
              transport = "Options::transport", algorithm = "Options::algorithm", ports = "Options::ports",
              tuning = "Options::tuning", fault = "Options::fault", tls = "Options::tls",
              advertise = "Options::advertise", listen = "Options::listen";
};

Result<void> check_timeout(const char* name, milliseconds timeout) {
  if (timeout.count() >= 1 && timeout.count() <= int64_t(longest_timeout_s * 1000)) return {};
  return invalid({name, fmt::format("{} ms", timeout.count())}, "must be from 1 ms to 1000000 s");
}

// What the two sides of a translating network are told.
Result<void> check_addresses(const Options& options, const Sources& from) {
  const Setting advertise{from.advertise, options.advertise}, listen{from.listen, options.listen};
  const auto advertised = parse_advertised(options.advertise, *parse_ports(options.ports));
  if (!advertised) return invalid(advertise, advertised.error().message);
  if (!advertised->ip.empty() && options.secret.empty() && !is_loopback(advertised->ip))
    return invalid(advertise,
                   "other machines can reach it, and there is no secret: set RONDO_SECRET (or "
                   "RONDO_SECRET_FILE) to the same long random text on every rank");
  if (const auto address = parse_listen(options.listen); !address)
    return invalid(listen, address.error().message);
  if (options.listen.empty() || options.rank != 0u || options.world == 1u) return {};
  if (parse_root(options.root)->kind != RootAddress::Kind::tcp)
    return invalid(listen, fmt::format("is for a root that is a host and a port, not {}", options.root));
  return {};
}

Result<Options> checked(Options options, const Sources& from) {
  if (!options.rank) return missing("RONDO_RANK (or RANK)", no_launcher);
  if (!options.world) return missing("RONDO_WORLD (or WORLD_SIZE)", no_launcher);
  const Setting rank{from.rank, std::to_string(*options.rank)},
      world{from.world, std::to_string(*options.world)};
  if (*options.world < 1 || *options.world > largest_world)
    return invalid(world, fmt::format("must be a whole number from 1 to {}", largest_world));
  if (*options.rank >= *options.world)
    return invalid(rank, fmt::format("must be below the number of ranks, {}", world.text()));
  if (options.world > 1u || !options.root.empty()) {
    if (options.root.empty()) return missing("RONDO_ROOT", "it says where rank 0 is found");
    if (auto root = parse_root(options.root); !root)
      return invalid({from.root, options.root}, root.error().message);
  }
  if (options.node && *options.node >= largest_world)
    return invalid({"Options::node", std::to_string(*options.node)},
                   fmt::format("must be a whole number from 0 to {}", largest_world - 1));
  if (options.transport.empty()) options.transport = "auto";
  if (options.algorithm.empty()) options.algorithm = "auto";
  if (auto ok = one_of({from.transport, options.transport}, transport_names); !ok) return ok.error();
  if (auto ok = one_of({from.algorithm, options.algorithm}, algorithm_names); !ok) return ok.error();
  if (auto ports = parse_ports(options.ports); !ports)
    return invalid({from.ports, options.ports}, ports.error().message);
  if (auto ok = check_addresses(options, from); !ok) return ok.error();
  if (auto faults = parse_faults(options.fault, *options.world); !faults)
    return invalid({from.fault, options.fault}, faults.error().message);
  if (options.tls.value_or(false) && options.world > 1u && options.secret.empty())
    return invalid(
        {from.tls, "1"},
        "TLS takes its keys from the job's secret, and there is none: set RONDO_SECRET (or "
        "RONDO_SECRET_FILE) "
        "to the same long random text on every rank, or start the ranks with rondo run, which makes one");
  if (!options.init_timeout) options.init_timeout = default_init_timeout;
  if (!options.timeout) options.timeout = default_timeout;
  if (!options.heartbeat) options.heartbeat = default_heartbeat;
  if (auto ok = check_timeout("Options::init_timeout", *options.init_timeout); !ok) return ok.error();
  if (auto ok = check_timeout("Options::timeout", *options.timeout); !ok) return ok.error();
  if (options.heartbeat->count() != 0)
    if (auto ok = check_timeout("Options::heartbeat", *options.heartbeat); !ok) return ok.error();
  return options;
}

// Fills one empty option from the first variable of `names` that is set; `read` turns text into the value.
template <class T, class Read>
Result<void> fill(std::optional<T>& option, std::string* source, const Lookup& lookup,
                  std::initializer_list<const char*> names, Read read) {
  if (option) return {};
  const auto setting = first_of(lookup, names);
  if (!setting) return {};
  const auto value = read(*setting);
  if (!value) return value.error();
  option = *value;
  if (source) *source = setting->name;
  return {};
}

void fill(std::string& option, std::string& source, const Lookup& lookup, const char* name) {
  if (!option.empty()) return;
  if (auto setting = first_of(lookup, {name})) {
    option = setting->value;
    source = name;
  }
}

Result<void> fill_secret(std::string& secret, const Lookup& lookup) {
  std::string unused;
  fill(secret, unused, lookup, "RONDO_SECRET");
  if (!secret.empty()) return {};
  const auto file = first_of(lookup, {"RONDO_SECRET_FILE"});
  if (!file) return {};
  auto content = secret_from(*file);
  if (!content) return content.error();
  secret = *content;
  return {};
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

std::map<std::string, std::string> all_variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != text.npos) variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return variables;
}

namespace {

Result<milliseconds> patience(const Setting& setting) {
  if (setting.value == "0") return milliseconds(0);
  const auto number = seconds(setting);
  return number ? number
                : invalid(setting, "must be 0, for never, or a number of seconds from 0.001 to 1000000");
}

auto flag(const Setting& setting) { return whole_number(setting, 0, 1); }

}  // namespace

Result<Options> resolve(const Options& in_code, const Lookup& lookup) {
  Options options = in_code;
  Sources from;
  const auto rank = [](const Setting& setting) { return whole_number(setting, 0, largest_world - 1); };
  const auto world = [](const Setting& setting) { return whole_number(setting, 1, largest_world); };
  const auto found = find_launcher(lookup);
  const Launcher launcher = found.value_or(Launcher{});
  if (auto ok = fill(options.rank, &from.rank, lookup, {"RONDO_RANK", launcher.rank}, rank); !ok)
    return ok.error();
  if (auto ok = fill(options.world, &from.world, lookup, {"RONDO_WORLD", launcher.world}, world); !ok)
    return ok.error();
  if (auto ok = fill(options.init_timeout, nullptr, lookup, {"RONDO_INIT_TIMEOUT"}, seconds); !ok)
    return ok.error();
  if (auto ok = fill(options.timeout, nullptr, lookup, {"RONDO_TIMEOUT"}, seconds); !ok) return ok.error();
  if (auto ok = fill(options.heartbeat, nullptr, lookup, {"RONDO_HEARTBEAT"}, patience); !ok)
    return ok.error();
  if (auto ok = fill_secret(options.secret, lookup); !ok) return ok.error();
  fill(options.transport, from.transport, lookup, "RONDO_TRANSPORT");
  fill(options.algorithm, from.algorithm, lookup, "RONDO_ALGORITHM");
  fill(options.ports, from.ports, lookup, "RONDO_PORTS");
  fill(options.tuning, from.tuning, lookup, "RONDO_TUNING");
  fill(options.advertise, from.advertise, lookup, "RONDO_ADVERTISE");
  fill(options.listen, from.listen, lookup, "RONDO_LISTEN");
  fill(options.fault, from.fault, lookup, "RONDO_FAULT");
  if (auto ok = fill(options.reproducible, nullptr, lookup, {"RONDO_REPRODUCIBLE"}, flag); !ok)
    return ok.error();
  if (auto ok = fill(options.tls, &from.tls, lookup, {"RONDO_TLS"}, flag); !ok) return ok.error();
  if (auto ok = fill(options.state_signal, nullptr, lookup, {"RONDO_STATE_SIGNAL"}, flag); !ok)
    return ok.error();
  const auto node = [](const Setting& setting) { return whole_number(setting, 0, largest_world - 1); };
  if (auto ok = fill(options.node, nullptr, lookup, {"RONDO_NODE"}, node); !ok) return ok.error();
  std::string unused;
  fill(options.interfaces, unused, lookup, "RONDO_INTERFACE");
  fill(options.root, from.root, lookup, "RONDO_ROOT");
  if (options.root.empty() && options.world && *options.world > 1 && options.rank) {
    auto root = root_from_launcher(lookup, {found, !options.secret.empty(), ::getuid()});
    if (!root) return root.error();
    options.root = *root;
  }
  return checked(std::move(options), from);
}

std::optional<Options> essential(const Options& in_code, const Lookup& lookup) {
  using Names = std::span<const std::string_view>;
  // A rank that does not know the last two, since they are wrong themselves, may still be heard.
  constexpr size_t dispensable = 2;
  constexpr std::array<std::string_view, 7> needed{"RONDO_RANK",   "RONDO_WORLD",       "RONDO_ROOT",
                                                   "RONDO_SECRET", "RONDO_SECRET_FILE", "RONDO_TLS",
                                                   "RONDO_LISTEN"};
  const auto only = [&](Names names) -> Lookup {
    return [&lookup, names](const char* name) -> std::optional<std::string> {
      const std::string_view wanted(name);
      const bool known = !wanted.starts_with("RONDO_") || std::ranges::find(names, wanted) != names.end();
      return known ? lookup(name) : std::nullopt;
    };
  };
  Options options;
  options.rank = in_code.rank;
  options.world = in_code.world;
  options.root = in_code.root;
  options.secret = in_code.secret;
  options.tls = in_code.tls;
  options.listen = in_code.listen;
  if (auto found = resolve(options, only(needed))) {
    found->tls = found->tls.value_or(false);
    return std::move(*found);
  }
  options.listen.clear();
  if (auto found = resolve(options, only(Names(needed).first(needed.size() - dispensable))))
    return std::move(*found);
  return std::nullopt;
}

bool is_rank(const Lookup& lookup) {
  return first_of(lookup, {"RONDO_RANK", "RANK"}) || find_launcher(lookup);
}

Result<Options> complete(const Options& options) { return checked(options, {}); }

Result<log::Level> log_level(const Lookup& lookup) {
  using enum log::Level;
  constexpr std::array<std::pair<std::string_view, log::Level>, 5> levels{
      {{"error", error}, {"warn", warn}, {"info", info}, {"debug", debug}, {"trace", trace}}};
  const auto setting = first_of(lookup, {"RONDO_LOG"});
  if (!setting) return warn;
  for (const auto& [name, level] : levels)
    if (setting->value == name) return level;
  return invalid(*setting, "must be one of: error, warn, info, debug, trace");
}

}  // namespace rondo
