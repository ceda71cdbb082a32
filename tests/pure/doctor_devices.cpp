// rondo doctor: RDMA devices, GPUs and quotas, on paper and in folders that look like /sys and /proc.
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "cli/doctor/probe.hpp"
#include "doctor.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

namespace fs = std::filesystem;

// The files of a machine, gone afterwards.
struct Tree {
  std::string root = fs::temp_directory_path() / "rondo-test-doctor-XXXXXX";
  Tree() { REQUIRE(::mkdtemp(root.data())); }
  ~Tree() { fs::remove_all(root); }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text << "\n";
  }
};

const Gid link_local{0, ip("fe80::1"), "IB/RoCE v1"}, v1{1, ip("10.0.0.5"), "IB/RoCE v1"},
    v2_six{2, ip("fd00::5"), "RoCE v2"}, v2_four{3, ip("10.0.0.5"), "RoCE v2"};

Machine with_port(std::vector<Gid> gids, const char* state = "ACTIVE", const char* layer = "Ethernet") {
  Machine machine = good_machine();
  machine.has_rdma_transport = true;
  machine.rdma = {{"mlx5_0", state, layer, "eth0", 1, std::move(gids)}};
  return machine;
}

}  // namespace

TEST_CASE("doctor: of a GID table, IPv4 over RoCE v2 comes first, link-local never") {
  CHECK(has(praise(with_port({link_local, v1, v2_six, v2_four}), "RDMA"), "GID 3: 10.0.0.5 of eth0"));
  CHECK(has(praise(with_port({link_local, v1, v2_six}), "RDMA"), "GID 2: fd00::5"));
  const Finding local = only(with_port({link_local}), "RDMA");
  CHECK(local.severity == Severity::warning);
  CHECK(has(local.what, "0: fe80::1 IB/RoCE v1"));
  CHECK(has(local.fix, "give eth0 an IP address"));
  CHECK(has(only(with_port({link_local, v1}), "RDMA").what, "only RoCE v1"));
  CHECK(has(only(with_port({}), "RDMA").what, "it has none"));
  CHECK(has(only(with_port({v2_four}, "DOWN"), "RDMA").what, "mlx5_0 port 1 is DOWN"));
  // On InfiniBand all GIDs look link-local, and are good.
  CHECK(has(praise(with_port({link_local}, "ACTIVE", "InfiniBand"), "RDMA"), "GID 0"));
  CHECK(has(only(with_port({link_local}, "INIT", "InfiniBand"), "RDMA").fix, "subnet manager"));
}

TEST_CASE("doctor: a build without RDMA only notes what is wrong with devices") {
  Machine machine = with_port({link_local});
  machine.has_rdma_transport = false;
  CHECK(only(machine, "RDMA").severity == Severity::note);
  CHECK(has(only(machine, "RDMA").what, "does not use it"));
}

TEST_CASE("doctor: RDMA devices as the kernel shows them") {
  const Tree tree;
  CHECK(probe_rdma(tree.root).empty());
  const std::string port = "/sys/class/infiniband/rxe0/ports/1";
  tree.put(port + "/state", "4: ACTIVE");
  tree.put(port + "/link_layer", "Ethernet");
  tree.put(port + "/gids/0", "fe80:0000:0000:0000:0000:00ff:fe00:0001");
  tree.put(port + "/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0005");
  tree.put(port + "/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000");
  tree.put(port + "/gids/10", "fd00:0000:0000:0000:0000:0000:0000:0005");
  for (const char* index : {"0", "1", "10"}) {
    tree.put(port + "/gid_attrs/types/" + index, "RoCE v2");
    tree.put(port + "/gid_attrs/ndevs/" + index, "eth0");
  }
  const auto found = probe_rdma(tree.root);
  REQUIRE(found.size() == 1);
  CHECK(found[0].device == "rxe0");
  CHECK(found[0].state == "ACTIVE");
  CHECK(found[0].interface == "eth0");
  REQUIRE(found[0].gids.size() == 3);
  CHECK(found[0].gids[1].index == 1);
  CHECK(found[0].gids[1].ip == ip("10.0.0.5"));
  CHECK(found[0].gids[1].type == "RoCE v2");
  CHECK(found[0].gids[2].index == 10);
}

TEST_CASE("doctor: GPUs of the driver and of the PCI bus, each once") {
  const Tree tree;
  CHECK(probe_gpus(tree.root).found.empty());
  const std::string pci = "/sys/bus/pci/devices/";
  tree.put(pci + "0000:01:00.0/class", "0x030200");
  tree.put(pci + "0000:01:00.0/vendor", "0x10de");
  tree.put(pci + "0000:02:00.0/class", "0x030000");
  tree.put(pci + "0000:02:00.0/vendor", "0x8086");  // an ordinary display
  tree.put(pci + "0000:03:00.0/class", "0x120000");
  tree.put(pci + "0000:03:00.0/vendor", "0x1002");
  tree.put(pci + "0000:04:00.0/class", "0x020000");
  tree.put(pci + "0000:04:00.0/vendor", "0x10de");  // a network adapter
  Machine machine = good_machine();
  machine.gpus = probe_gpus(tree.root);
  CHECK(machine.gpus.found.size() == 2);
  CHECK(has(only(machine, "GPUs").what, "driver is not loaded"));
  tree.put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 7");
  tree.put("/sys/module/nvidia/version", "570.1");
  machine.gpus = probe_gpus(tree.root);
  REQUIRE(machine.gpus.found.size() == 2);
  CHECK(machine.gpus.found[0].name == "NVIDIA H200");
  CHECK(has(only(machine, "GPUs").fix, "--gpus all"));
  tree.put("/dev/nvidiactl", "");
  machine.gpus = probe_gpus(tree.root);
  CHECK(has(praise(machine, "GPUs", {2u, ""}), "NVIDIA H200 at 0000:01:00.0"));
  CHECK(has(praise(machine, "GPUs"), "driver 570.1"));
  CHECK(has(only(machine, "GPUs", {3u, ""}).what, "3 ranks for 2 GPUs"));
}

TEST_CASE("doctor: the quota of a control group, in every version and place") {
  const auto quota = [](const std::string& groups, std::vector<std::pair<std::string, std::string>> files) {
    const Tree tree;
    tree.put("/proc/self/cgroup", groups);
    for (const auto& [path, text] : files) tree.put("/sys/fs/cgroup" + path, text);
    return probe_cpus(tree.root).quota;
  };
  CHECK_FALSE(quota("0::/", {}).has_value());
  CHECK(quota("0::/", {{"/cpu.max", "150000 100000"}}) == 1.5);  // a container sees its own group only
  CHECK_FALSE(quota("0::/a/b", {{"/a/b/cpu.max", "max 100000"}}).has_value());
  CHECK(quota("0::/a/b", {{"/a/cpu.max", "200000 100000"}, {"/a/b/cpu.max", "max 100000"}}) == 2);
  CHECK(quota("0::/a/b", {{"/a/cpu.max", "200000 100000"}, {"/a/b/cpu.max", "50000 100000"}}) == 0.5);
  // Version 1: one folder for each set of controllers.
  CHECK(quota("4:cpu,cpuacct:/docker/x\n3:memory:/y",
              {{"/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "300000"},
               {"/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000"}}) == 3);
  CHECK_FALSE(quota("1:cpu:/", {{"/cpu/cpu.cfs_quota_us", "-1"}, {"/cpu/cpu.cfs_period_us", "100000"}}));
  CHECK(quota("1:cpuset:/a\n0::/", {{"/unified/cpu.max", "100000 100000"}}) == 1);
}

TEST_CASE("doctor: the clock source and the speed of interfaces") {
  const Tree tree;
  CHECK(probe_clock(tree.root) == "");
  tree.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm");
  CHECK(probe_clock(tree.root) == "acpi_pm");
  tree.put("/sys/class/net/eth0/speed", "25000");
  tree.put("/sys/class/net/eth1/speed", "-1");
  CHECK(probe_speeds(tree.root) == std::map<std::string, uint32_t>{{"eth0", 25000}});
}
