// Cores and clocks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/doctor/checks.hpp"

namespace rondo::cli::doctor {

Findings check_cores(const Machine& machine, const Plan& plan) {
  const Cpus& cpus = machine.cpus;
  const double quota = cpus.quota.value_or(cpus.usable);
  const bool throttled = quota < cpus.usable;
  const uint32_t cores = throttled ? std::max(1u, uint32_t(quota)) : cpus.usable;
  Findings found;
  if (throttled)
    found.push_back(warning(
        fmt::format("{} cores are visible, but the container may use {:g} of them", cpus.usable, quota),
        "ranks that seem to have a core each spin while they wait; that uses the quota up, and then all of "
        "them stand still for the rest of a period",
        fmt::format("bind the job to {} core{} (taskset, docker run --cpuset-cpus) in place of the quota, or "
                    "raise it",
                    cores, cores == 1 ? "" : "s")));
  if (plan.ranks && *plan.ranks > cores)
    found.push_back(warning(
        fmt::format("{} ranks for {} core{}", *plan.ranks, cores, cores == 1 ? "" : "s"),
        "they take turns: Rondo sleeps in place of spinning, and an operation waits until "
        "every rank has had its turn; right, but slow",
        fmt::format("start {} rank{} here, or give the job more cores", cores, cores == 1 ? "" : "s")));
  if (!found.empty()) return found;
  const std::string text = cpus.usable == cpus.present
                               ? fmt::format("{}", cpus.usable)
                               : fmt::format("{} of {} (affinity)", cpus.usable, cpus.present);
  return {ok(plan.ranks ? fmt::format("{} for {} ranks", text, *plan.ranks) : text)};
}

Findings check_clock(const Machine& machine, const Plan&) {
  // Those that a process reads without a system call.
  constexpr std::array<std::string_view, 4> quick{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                                  "arch_sys_counter"};
  const std::string& source = machine.clock_source;
  if (source.empty()) return {ok("the kernel does not tell its clock source")};
  if (std::ranges::find(quick, source) != quick.end())
    return {ok(source + "; the wall clocks of machines may differ, Rondo does not use them")};
  return {
      note("the clock source is " + source,
           "every look at the clock, for a deadline or a measurement, becomes a system call or worse: small "
           "operations take longer",
           "boot with clocksource=tsc where the machine has one that the kernel trusts (dmesg | grep tsc)")};
}

}  // namespace rondo::cli::doctor
