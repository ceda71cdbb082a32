// How long a schedule takes here, as far as choosing among schedules needs to know: the alpha-beta-gamma model of
// schedule/cost.hpp, in closed form over what a profile counts. On a node of S ranks and C cores,
//
//   time = alpha * rounds                             one after another
//        + message * messages + beta * bytes          work: sending and receiving,
//        + gamma * reduced + stored * stored          reducing, and keeping partials
//        + alpha' * outer rounds + beta' * bytes that the busiest node sends      between nodes
//
// Where ranks have a core each, work is that of the busiest rank. Where S > C it is what the C cores have to do,
// S/C times the mean, and then what the busiest has to do alone (Brent, "The parallel evaluation of general
// arithmetic expressions", JACM 21(2), 1974); and a round lets every rank of a core run, S/C of them. Once
// the vectors of a node's ranks do not fit into its caches, partials cost more, and so does what is sent from memory
// instead of being passed on as it comes.
//
// Every rank must come to the same result: only additions, products, quotients and comparisons of IEEE 754
// doubles, uncontracted, of values that are agreed.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "schedule/profile.hpp"

namespace rondo::engine {

static_assert(std::numeric_limits<double>::is_iec559);

/// The same on every rank of a communicator.
struct Situation {
  uint32_t world;
  bool publishes;                        // all ranks see one memory
  uint32_t cores = 1;                    // of a node
  std::span<const uint32_t> nodes = {};  // of every rank; empty: all are on one
};

/// Nanoseconds.
struct Costs {
  struct PerStep {
    double own, shared;  // where ranks have a core each, and where they share cores
  };
  struct PerByte {
    double near, far;  // in caches; what is added beyond them
  };
  PerStep alpha, message;
  double beta, gamma;
  PerByte cold, stored;  // cold: sent from memory
  double caches;         // bytes, of a node
  double between_nodes_alpha, between_nodes_beta;
};

/// Between nodes: a round trip of some 50 us and 10 Gbit/s, which is an assumption and not a measurement.
inline constexpr double assumed_alpha = 25000, assumed_beta = 0.8;

/// Measured with 2, 4 and 8 ranks on 2 cores of an Intel Xeon (Sapphire Rapids) virtual machine, Linux 6.18, by
///   rondo tune -n N --transport tcp|shm
/// thrice each, the best of the three counted; fitted to all sizes and operations that it prints, first
/// to the times and then to the choices, on which less is lost. docs/algorithms.md says how well they do.
/// By hand: shm's alpha and message of a core each, from all-reduces alone (the others' ranks shared a core), and its
/// cold cost, since 8 MiB all-reduces of 4 and 8 ranks were quickest direct.
inline constexpr Costs tcp_costs{.alpha = {.own = 3770, .shared = 2560},
                                 .message = {.own = 762, .shared = 1820},
                                 .beta = 0.149,
                                 .gamma = 0.223,
                                 .cold = {.near = 0, .far = 0.276},
                                 .stored = {.near = 0.192, .far = 0.741},
                                 .caches = 4 << 20,
                                 .between_nodes_alpha = assumed_alpha,
                                 .between_nodes_beta = assumed_beta};
inline constexpr Costs shm_costs{.alpha = {.own = 100, .shared = 1820},
                                 .message = {.own = 200, .shared = 338},
                                 .beta = 0.0766,
                                 .gamma = 0.0505,
                                 .cold = {.near = 0, .far = 0},
                                 .stored = {.near = 0.0965, .far = 0.397},
                                 .caches = 4 << 20,
                                 .between_nodes_alpha = assumed_alpha,
                                 .between_nodes_beta = assumed_beta};

/// Of a vector of so many bytes, in nanoseconds.
double predicted(const schedule::Profile& profile, uint64_t bytes, const Situation& situation,
                 const Costs& costs) noexcept;

}  // namespace rondo::engine
