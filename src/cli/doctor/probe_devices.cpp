// RDMA devices and GPUs, from /proc and /sys alone: no driver's library is needed.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/descriptor.hpp"
#include "cli/doctor/files.hpp"
#include "cli/doctor/probe.hpp"

namespace rondo::cli::doctor {
namespace {

// "fe80:0000:...", and for IPv4 "0000:0000:0000:0000:0000:ffff:0a00:0005". Nothing: an empty entry.
std::optional<Ip> gid_ip(const std::string& text) {
  asio::error_code error;
  const auto ip = asio::ip::make_address_v6(text, error);
  if (error || ip.is_unspecified()) return std::nullopt;
  if (ip.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, ip);
  return ip;
}

RdmaPort read_port(const std::string& device, const std::string& name, const std::string& folder) {
  RdmaPort port;
  port.device = device;
  port.port = unsigned(std::atoi(name.c_str()));
  const std::string state = content(folder + "/state");  // "4: ACTIVE"
  const size_t colon = state.find(": ");
  port.state = colon == state.npos ? state : state.substr(colon + 2);
  port.layer = content(folder + "/link_layer");
  for (const std::string& index : names_in(folder + "/gids")) {
    const auto ip = gid_ip(content(folder + "/gids/" + index));
    if (!ip) continue;
    port.gids.push_back(
        {unsigned(std::atoi(index.c_str())), *ip, content(folder + "/gid_attrs/types/" + index)});
    if (port.interface.empty()) port.interface = content(folder + "/gid_attrs/ndevs/" + index);
  }
  return port;
}

constexpr const char* nvidia = "0x10de";
constexpr const char* amd = "0x1002";

// Of PCI classes: 0x03 display controllers, 0x12 accelerators.
bool is_gpu(const std::string& device_class, const std::string& vendor) {
  const bool fits = device_class.starts_with("0x03") || device_class.starts_with("0x12");
  return fits && (vendor == nvidia || vendor == amd);
}

}  // namespace

std::vector<RdmaPort> probe_rdma(const std::string& root) {
  std::vector<RdmaPort> found;
  const std::string devices = root + "/sys/class/infiniband";
  for (const std::string& device : names_in(devices))
    for (const std::string& port : names_in(devices + "/" + device + "/ports"))
      found.push_back(read_port(device, port, devices + "/" + device + "/ports/" + port));
  return found;
}

// The driver knows the models; the PCI bus knows the rest, and GPUs without a driver.
Gpus probe_gpus(const std::string& root) {
  Gpus gpus;
  const std::string driver = root + "/proc/driver/nvidia", pci = root + "/sys/bus/pci/devices";
  gpus.nvidia_driver = content(root + "/sys/module/nvidia/version");
  for (const std::string& place : names_in(driver + "/gpus")) {
    const auto model = field(content(driver + "/gpus/" + place + "/information"), "Model:");
    gpus.found.push_back({place, model.value_or("NVIDIA GPU")});
    gpus.nvidia_here = true;
  }
  if (gpus.nvidia_here && gpus.nvidia_driver.empty()) gpus.nvidia_driver = "of unknown version";
  for (const std::string& place : names_in(pci)) {
    const std::string vendor = content(pci + "/" + place + "/vendor");
    if (!is_gpu(content(pci + "/" + place + "/class"), vendor)) continue;
    if (std::ranges::find(gpus.found, place, &Gpu::pci) != gpus.found.end()) continue;
    gpus.found.push_back({place, vendor == nvidia ? "NVIDIA GPU" : "AMD GPU"});
    gpus.nvidia_here = gpus.nvidia_here || vendor == nvidia;
  }
  gpus.device_files = bool(Descriptor(::open((root + "/dev/nvidiactl").c_str(), O_RDWR | O_CLOEXEC)));
  return gpus;
}

std::map<std::string, uint32_t> probe_speeds(const std::string& root) {
  std::map<std::string, uint32_t> speeds;
  for (const std::string& name : names_in(root + "/sys/class/net"))
    if (const int speed = std::atoi(content(root + "/sys/class/net/" + name + "/speed").c_str()); speed > 0)
      speeds[name] = uint32_t(speed);
  return speeds;
}

}  // namespace rondo::cli::doctor
