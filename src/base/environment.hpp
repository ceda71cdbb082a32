// The only reader of the environment.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "rondo/options.hpp"
#include "rondo/result.hpp"

namespace rondo {

/// Looks a variable up; an empty value counts as absent. Tests pass their own.
using Lookup = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);
/// All of it.
std::map<std::string, std::string> all_variables();

/// Ranks that a job may have.
inline constexpr uint32_t largest_world = 65536;

/// The RONDO_ variables that Rondo reads (docs/launching.md), and RONDO_JOB, by which rondo run marks its ranks.
inline constexpr std::array<std::string_view, 22> variable_names{
    "RONDO_RANK",         "RONDO_WORLD",     "RONDO_ROOT",      "RONDO_SECRET",       "RONDO_SECRET_FILE",
    "RONDO_TLS",          "RONDO_INTERFACE", "RONDO_PORTS",     "RONDO_ADVERTISE",    "RONDO_LISTEN",
    "RONDO_TRANSPORT",    "RONDO_ALGORITHM", "RONDO_TUNING",    "RONDO_NODE",         "RONDO_REPRODUCIBLE",
    "RONDO_INIT_TIMEOUT", "RONDO_TIMEOUT",   "RONDO_HEARTBEAT", "RONDO_STATE_SIGNAL", "RONDO_FAULT",
    "RONDO_LOG",          "RONDO_JOB"};

/// What RONDO_TRANSPORT and RONDO_ALGORITHM may be.
inline constexpr std::array<std::string_view, 3> transport_names{"auto", "tcp", "shm"};
inline constexpr std::array<std::string_view, 9> algorithm_names{
    "auto", "ring",        "direct",           "one_shot",    "dissemination",
    "tree", "double_tree", "halving_doubling", "hierarchical"};

/// `in_code` completed from the environment, then from the defaults, and checked. Errors: invalid_argument,
/// naming the variable, its value and what it may be.
Result<Options> resolve(const Options& in_code, const Lookup& lookup);
/// Of settings that resolve refuses: those alone by which a rank finds rank 0 and proves itself to it, and that it is one
/// (`tls` is left empty only where what is set is no answer). Nothing: they are wrong themselves.
std::optional<Options> essential(const Options& in_code, const Lookup& lookup);
/// Whether a launcher has already made this process a rank of a job.
bool is_rank(const Lookup& lookup);
/// Checks `options` alone: fills in the defaults, reads nothing.
Result<Options> complete(const Options& options);
/// RONDO_LOG, or an error naming the levels.
Result<log::Level> log_level(const Lookup& lookup);

}  // namespace rondo
