#include "schedule/catalogue.hpp"

#include <array>

#include "schedule/barrier.hpp"
#include "schedule/direct.hpp"
#include "schedule/double_tree.hpp"
#include "schedule/exchange.hpp"
#include "schedule/halving_doubling.hpp"
#include "schedule/hierarchical.hpp"
#include "schedule/ring.hpp"
#include "schedule/tree.hpp"

namespace rondo::schedule {
namespace {

uint32_t one_per_rank(const Shape& shape) { return shape.world; }
uint32_t one(const Shape&) { return 1; }
uint32_t two(const Shape&) { return halves; }
uint32_t one_per_pair(const Shape& shape) { return shape.world * shape.world; }
constexpr bool canonical = true;

constexpr std::array all{
    Schedule{Operation::all_reduce, Algorithm::ring, one_per_rank, ring_all_reduce},
    Schedule{Operation::reduce_scatter, Algorithm::ring, one_per_rank, ring_reduce_scatter},
    Schedule{Operation::all_gather, Algorithm::ring, one_per_rank, ring_all_gather},
    Schedule{Operation::broadcast, Algorithm::ring, one, ring_broadcast},
    Schedule{Operation::barrier, Algorithm::dissemination, dissemination_chunks, dissemination_barrier},
    Schedule{Operation::all_reduce, Algorithm::direct, one_per_rank, direct_all_reduce, canonical},
    Schedule{Operation::reduce_scatter, Algorithm::direct, one_per_rank, direct_reduce_scatter, canonical},
    Schedule{Operation::all_gather, Algorithm::direct, one_per_rank, direct_all_gather},
    Schedule{Operation::broadcast, Algorithm::direct, one, direct_broadcast},
    Schedule{Operation::barrier, Algorithm::direct, one, direct_barrier},
    Schedule{Operation::all_reduce, Algorithm::one_shot, one, one_shot_all_reduce, canonical},
    Schedule{Operation::reduce, Algorithm::direct, one_per_rank, direct_reduce, canonical},
    Schedule{Operation::reduce, Algorithm::one_shot, one, one_shot_reduce, canonical},
    Schedule{Operation::reduce, Algorithm::tree, one, tree_reduce, canonical},
    Schedule{Operation::broadcast, Algorithm::tree, one, tree_broadcast},
    Schedule{Operation::all_reduce, Algorithm::halving_doubling, one_per_rank, halving_doubling_all_reduce,
             canonical},
    Schedule{Operation::reduce_scatter, Algorithm::halving_doubling, one_per_rank, halving_reduce_scatter,
             canonical},
    Schedule{Operation::all_gather, Algorithm::halving_doubling, one_per_rank, doubling_all_gather},
    Schedule{Operation::all_reduce, Algorithm::double_tree, two, double_tree_all_reduce},
    Schedule{Operation::reduce, Algorithm::double_tree, two, double_tree_reduce},
    Schedule{Operation::broadcast, Algorithm::double_tree, two, double_tree_broadcast},
    Schedule{Operation::all_reduce, Algorithm::hierarchical, hierarchical_chunks, hierarchical_all_reduce},
    Schedule{Operation::reduce_scatter, Algorithm::hierarchical, one_per_rank, hierarchical_reduce_scatter},
    Schedule{Operation::all_gather, Algorithm::hierarchical, one_per_rank, hierarchical_all_gather},
    Schedule{Operation::broadcast, Algorithm::hierarchical, one, hierarchical_broadcast},
    Schedule{Operation::reduce, Algorithm::hierarchical, one, hierarchical_reduce},
    Schedule{Operation::gather, Algorithm::direct, one_per_rank, direct_gather},
    Schedule{Operation::scatter, Algorithm::direct, one_per_rank, direct_scatter},
    Schedule{Operation::all_to_all, Algorithm::direct, one_per_pair, direct_all_to_all},
    Schedule{Operation::send_recv, Algorithm::direct, one_per_rank, direct_send_recv},
};

}  // namespace

std::span<const Schedule> catalogue() noexcept { return all; }

std::optional<Algorithm> algorithm_named(std::string_view name) noexcept {
  for (const Schedule& schedule : all)
    if (name_of(schedule.algorithm) == name) return schedule.algorithm;
  return std::nullopt;
}

const Schedule* find(Operation operation, Algorithm algorithm) noexcept {
  for (const Schedule& schedule : all)
    if (schedule.operation == operation && schedule.algorithm == algorithm) return &schedule;
  return nullptr;
}

}  // namespace rondo::schedule
