#include "schedule/catalogue.hpp"

#include <array>

#include "schedule/barrier.hpp"
#include "schedule/direct.hpp"
#include "schedule/ring.hpp"

namespace rondo::schedule {
namespace {

uint32_t one_per_rank(const Shape& shape) { return shape.world; }
uint32_t one(const Shape&) { return 1; }

constexpr std::array all{
    Schedule{Operation::all_reduce, Algorithm::ring, one_per_rank, ring_all_reduce},
    Schedule{Operation::reduce_scatter, Algorithm::ring, one_per_rank, ring_reduce_scatter},
    Schedule{Operation::all_gather, Algorithm::ring, one_per_rank, ring_all_gather},
    Schedule{Operation::broadcast, Algorithm::ring, one, ring_broadcast},
    Schedule{Operation::barrier, Algorithm::dissemination, dissemination_chunks, dissemination_barrier},
    Schedule{Operation::all_reduce, Algorithm::direct, one_per_rank, direct_all_reduce},
    Schedule{Operation::reduce_scatter, Algorithm::direct, one_per_rank, direct_reduce_scatter},
    Schedule{Operation::all_gather, Algorithm::direct, one_per_rank, direct_all_gather},
    Schedule{Operation::broadcast, Algorithm::direct, one, direct_broadcast},
    Schedule{Operation::barrier, Algorithm::direct, one, direct_barrier},
    Schedule{Operation::all_reduce, Algorithm::one_shot, one, one_shot_all_reduce},
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
