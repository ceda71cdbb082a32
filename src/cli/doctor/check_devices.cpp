// RDMA devices and GPUs.
#include <fmt/format.h>

#include <algorithm>

#include "cli/doctor/checks.hpp"

namespace rondo::cli::doctor {
namespace {

bool is_link_local(const Ip& ip) {
  return ip.is_v6() ? ip.to_v6().is_link_local() : (ip.to_v4().to_uint() >> 16) == 0xa9fe;
}

// By which GID other machines reach a port: over InfiniBand by the first; over Ethernet by one whose IP routers
// and switches know, so a link-local one is never chosen, and RoCE v2 before v1, which no router passes on.
const Gid* best_gid(const RdmaPort& port) {
  if (port.layer == "InfiniBand") return port.gids.empty() ? nullptr : &port.gids.front();
  const auto rank = [](const Gid& gid) {
    if (is_link_local(gid.ip)) return 0;
    return 1 + (gid.type == "RoCE v2" ? 2 : 0) + (gid.ip.is_v4() ? 1 : 0);
  };
  const auto best = std::ranges::max_element(port.gids, {}, rank);
  return best == port.gids.end() || rank(*best) == 0 ? nullptr : &*best;
}

std::string table_of(const RdmaPort& port) {
  std::string text;
  for (const Gid& gid : port.gids)
    text += fmt::format("{}{}: {} {}", text.empty() ? "" : "; ", gid.index, gid.ip.to_string(), gid.type);
  return text.empty() ? "none" : text;
}

Finding judge_port(const RdmaPort& port) {
  const std::string name = fmt::format("{} port {}", port.device, port.port);
  if (port.state != "ACTIVE")
    return warning(fmt::format("{} is {}", name, port.state), "nothing can be sent over it",
                   port.layer == "InfiniBand"
                       ? "check the cable, and that a subnet manager runs"
                       : fmt::format("check the cable, and ip link set {} up",
                                     port.interface.empty() ? "INTERFACE" : port.interface));
  const Gid* const gid = best_gid(port);
  if (!gid)
    return warning(
        fmt::format("{} has no GID that leads to other machines; it has {}", name, table_of(port)),
        "a link-local GID is known on this machine's wire only: connecting fails as unreachable",
        fmt::format("give {} an IP address", port.interface.empty() ? "its interface" : port.interface));
  if (port.layer != "InfiniBand" && gid->type != "RoCE v2")
    return warning(fmt::format("{} has only RoCE v1 GIDs: {}", name, table_of(port)),
                   "no router passes them on, and a peer that uses RoCE v2 is not reached",
                   "set default_roce_mode of the device to RoCE v2 (cma_roce_mode)");
  return ok(fmt::format("{} is active, {}, GID {}: {}{}", name, port.layer, gid->index, gid->ip.to_string(),
                        port.interface.empty() ? "" : " of " + port.interface));
}

}  // namespace

Findings check_rdma(const Machine& machine, const Plan&) {
  if (machine.rdma.empty()) return {ok("no device; none is needed")};
  Findings found;
  for (const RdmaPort& port : machine.rdma) {
    Finding finding = judge_port(port);
    if (!machine.has_rdma_transport) {
      finding.severity = std::min(finding.severity, Severity::note);
      finding.what += "; this build of Rondo does not use it";
    }
    found.push_back(std::move(finding));
  }
  return found;
}

Findings check_gpus(const Machine& machine, const Plan& plan) {
  const Gpus& gpus = machine.gpus;
  if (gpus.found.empty()) return {ok("none; none is needed")};
  std::string list;
  for (const Gpu& gpu : gpus.found) list += (list.empty() ? "" : ", ") + gpu.name + " at " + gpu.pci;
  if (gpus.nvidia_here && gpus.nvidia_driver.empty())
    return {note(list + ", but NVIDIA's driver is not loaded", "CUDA programs find no GPU",
                 "install the driver, or modprobe nvidia; ranks that compute on the CPU need nothing")};
  if (gpus.nvidia_here && !gpus.device_files)
    return {note(list + ", but /dev/nvidiactl cannot be opened", "CUDA programs find no GPU",
                 "docker run --gpus all, or the rights of the device files")};
  if (plan.ranks && *plan.ranks > gpus.found.size())
    return {note(fmt::format("{} ranks for {} GPU{}: {}", *plan.ranks, gpus.found.size(),
                             gpus.found.size() == 1 ? "" : "s", list),
                 "ranks that share a GPU take turns on it",
                 "as many ranks as GPUs, if each computes on one")};
  return {ok(gpus.nvidia_driver.empty() ? list : fmt::format("{}; driver {}", list, gpus.nvidia_driver))};
}

}  // namespace rondo::cli::doctor
