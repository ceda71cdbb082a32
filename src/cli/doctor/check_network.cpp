// Interfaces, names, ports.
#include <fmt/format.h>

#include <algorithm>

#include "cli/doctor/addresses.hpp"
#include "cli/doctor/checks.hpp"

namespace rondo::cli::doctor {
namespace {

std::string list_of(const std::vector<Ip>& all) {
  std::string text;
  for (const Ip& ip : all) text += (text.empty() ? "" : ", ") + ip.to_string();
  return text;
}

Finding no_network(const Machine& machine) {
  std::string others;
  for (const auto& at : machine.addresses)
    if (!at.ip.is_loopback())
      others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", at.interface, at.ip.to_string());
  if (others.empty())
    return note("loopback only", "jobs run on this machine alone", "bring an interface up to join others");
  return warning(
      "no address that other machines can be expected to reach; only " + others,
      "link-local addresses and bridges of containers do not lead to other machines, so Rondo does "
      "not choose them by itself: jobs run on this machine alone",
      "give an interface an address, or name one of these in RONDO_INTERFACE where they do lead there");
}

// A quicker one that is not chosen.
std::optional<Finding> quicker(const Machine& machine, const bootstrap::NetworkAddress& chosen) {
  const auto speed = [&](const std::string& name) {
    const auto known = machine.megabits.find(name);
    return known == machine.megabits.end() ? 0u : known->second;
  };
  const auto best = std::ranges::max_element(
      machine.addresses, {}, [&](const auto& at) { return is_reachable(at) ? speed(at.interface) : 0u; });
  if (best == machine.addresses.end() || speed(chosen.interface) == 0 ||
      speed(best->interface) <= speed(chosen.interface))
    return std::nullopt;
  return note(fmt::format("{} has {} Mbit/s, {}, which comes first, {}", best->interface,
                          speed(best->interface), chosen.interface, speed(chosen.interface)),
              "unless the route to rank 0 says otherwise, data take the first",
              "RONDO_INTERFACE=" + best->interface + " on every rank, if the others are reached over it");
}

}  // namespace

// Rank 0 on this machine, others elsewhere: where loopback would be no use, what is chosen then?
Findings check_interfaces(const Machine& machine, const Plan&) {
  const std::string list = lookup_in(machine.variables)("RONDO_INTERFACE").value_or("");
  const bootstrap::Situation elsewhere{asio::ip::address_v4::loopback(), false};
  const auto choice = bootstrap::choose_address(machine.addresses, list, elsewhere);
  if (!choice)
    return {problem(choice.error().message, "every rank on this machine ends with this while it joins",
                    "name one of the interfaces above in RONDO_INTERFACE, or unset it")};
  const bool has_loopback =
      std::ranges::any_of(machine.addresses, [](const auto& at) { return at.ip.is_loopback(); });
  Findings found;
  if (!has_loopback)
    found.push_back(
        warning("the loopback interface is down",
                "ranks of this machine can only meet in shared memory: TCP between them has no way",
                "ip link set lo up"));
  if (choice->ip.is_loopback())
    found.push_back(no_network(machine));
  else if (auto finding = quicker(machine, *choice); finding && list.empty())
    found.push_back(*finding);
  if (found.empty())
    found.push_back(ok(fmt::format(
        "{} ({}){}", choice->interface, choice->ip.to_string(),
        list.empty() ? " comes first where rank 0 is on this machine" : " by RONDO_INTERFACE=" + list)));
  return found;
}

Findings check_host_name(const Machine& machine, const Plan&) {
  const HostName& host = machine.host;
  const std::string add = fmt::format(
      "give {} this machine's own address in /etc/hosts, or give RONDO_ROOT and MASTER_ADDR as addresses",
      host.name);
  if (host.addresses.empty())
    return {warning(fmt::format("{} cannot be resolved: {}", host.name, host.error),
                    "launchers and scripts tell ranks to find rank 0 by this name", add)};
  const std::string means = fmt::format("{} means {}", host.name, list_of(host.addresses));
  if (std::ranges::all_of(host.addresses, [](const Ip& ip) { return ip.is_loopback(); }))
    return {note(means + " on this machine",
                 "whoever is told that address finds itself. Rondo tells its peers another; but a rank 0 "
                 "named so listens on loopback only if there is no secret",
                 "nothing for Rondo; for other programs, " + add)};
  if (std::ranges::none_of(host.addresses, [&](const Ip& ip) { return is_here(machine, ip); }))
    return {warning(means + ", which is not here",
                    "ranks that look for rank 0 by this name look on another machine", add)};
  return {ok(means)};
}

Findings check_ports(const Machine& machine, const Plan& plan) {
  const Ports& ports = machine.ports;
  if (!ports.wanted)
    return {ok(fmt::format("any; the kernel gives {}-{}", ports.ephemeral.first, ports.ephemeral.last))};
  const uint32_t all = ports.wanted->size(), free = all - uint32_t(ports.not_free.size());
  const std::string range = ports.wanted->first == ports.wanted->last
                                ? fmt::format("{}", ports.wanted->first)
                                : fmt::format("{}-{}", ports.wanted->first, ports.wanted->last);
  std::string taken;
  for (size_t i = 0; i < std::min<size_t>(ports.not_free.size(), 8); ++i)
    taken += fmt::format("{}{}", i == 0 ? "" : ", ", ports.not_free[i]);
  if (ports.not_free.size() > 8) taken += ", ...";
  const std::string what =
      fmt::format("RONDO_PORTS={}: {} of {} free{}", range, free, all, taken.empty() ? "" : "; not " + taken);
  // Each rank but rank 0 listens at one.
  const uint32_t needed = std::max(2u, plan.ranks.value_or(2)) - 1;
  const char* const why =
      "every rank of a machine but rank 0 listens at one of them, and so it is for each communicator that "
      "split makes";
  if (free < needed)
    return {problem(plan.ranks ? fmt::format("{}, {} needed", what, needed) : what, why,
                    "give a longer range, or none and the kernel chooses; ss -ltnp shows what holds a port")};
  if (free < all) return {note(what, why, "nothing, as long as enough of them are free")};
  return {ok(what)};
}

}  // namespace rondo::cli::doctor
