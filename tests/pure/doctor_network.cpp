// rondo doctor: interfaces, names, ports and roots of machines on paper.
#include "doctor.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

const Plan root_plan{std::nullopt, "head:29500"};

Machine with_root(const char* address, std::optional<Ip> source, Reply reply) {
  Machine machine = good_machine();
  machine.variables["RONDO_SECRET"] = "s";
  machine.root.paths = {{ip(address), source, reply, ""}};
  return machine;
}

}  // namespace

TEST_CASE("doctor: only what leads to other machines counts as a network") {
  Machine machine = good_machine();
  CHECK(has(praise(machine, "interfaces"), "eth0 (10.0.0.5)"));
  machine.addresses = {{"lo", ip("127.0.0.1")}, {"docker0", ip("172.17.0.1")}};
  CHECK(only(machine, "interfaces").severity == Severity::warning);
  CHECK(has(only(machine, "interfaces").what, "only docker0 (172.17.0.1)"));
  machine.addresses = {{"lo", ip("127.0.0.1")}, {"usb0", ip("169.254.7.7")}, {"eth0", ip("fe80::1")}};
  CHECK(has(only(machine, "interfaces").what, "usb0 (169.254.7.7), eth0 (fe80::1"));
  machine.addresses = {{"lo", ip("127.0.0.1")}};
  CHECK(only(machine, "interfaces").severity == Severity::note);
  machine.addresses = {{"lo", ip("::1")}, {"eth0", ip("fd00::5")}};
  CHECK(has(praise(machine, "interfaces"), "fd00::5"));
  machine.addresses = {{"eth0", ip("10.0.0.5")}};
  CHECK(has(only(machine, "interfaces").fix, "ip link set lo up"));
}

TEST_CASE("doctor: RONDO_INTERFACE that fits nothing, and a quicker interface") {
  Machine machine = good_machine();
  machine.variables["RONDO_INTERFACE"] = "ib0";
  CHECK(only(machine, "interfaces").severity == Severity::problem);
  CHECK(has(only(machine, "interfaces").what, "eth0 (10.0.0.5)"));
  machine.variables.clear();
  machine.addresses.push_back({"ens1", ip("10.1.0.5")});
  machine.megabits = {{"eth0", 1000}, {"ens1", 100000}};
  CHECK(only(machine, "interfaces").severity == Severity::note);
  CHECK(has(only(machine, "interfaces").fix, "RONDO_INTERFACE=ens1"));
  machine.variables["RONDO_INTERFACE"] = "eth0";  // somebody has chosen
  CHECK(complaints(machine, "interfaces").empty());
  machine.variables.clear();
  machine.addresses.back().ip = ip("169.254.1.1");
  CHECK(complaints(machine, "interfaces").empty());
}

TEST_CASE("doctor: what the machine's own name means") {
  Machine machine = good_machine();
  machine.host.addresses = {ip("127.0.1.1")};
  CHECK(only(machine, "host name").severity == Severity::note);
  CHECK(has(only(machine, "host name").what, "node1 means 127.0.1.1"));
  CHECK(has(only(machine, "host name").fix, "/etc/hosts"));
  machine.host.addresses = {ip("10.0.0.99")};
  CHECK(only(machine, "host name").severity == Severity::warning);
  CHECK(has(only(machine, "host name").what, "10.0.0.99, which is not here"));
  machine.host.addresses = {ip("127.0.1.1"), ip("10.0.0.5")};
  CHECK(complaints(machine, "host name").empty());
  machine.host = {"node1", {}, "Name or service not known"};
  CHECK(only(machine, "host name").severity == Severity::warning);
  CHECK(has(only(machine, "host name").what, "Name or service not known"));
}

TEST_CASE("doctor: ports that are taken") {
  Machine machine = good_machine();
  CHECK(has(praise(machine, "ports"), "32768-60999"));
  machine.ports.wanted = PortRange{45000, 45010};
  CHECK(has(praise(machine, "ports"), "RONDO_PORTS=45000-45010: 11 of 11 free"));
  for (uint16_t port = 45000; port <= 45010; ++port) machine.ports.not_free.push_back(port);
  CHECK(only(machine, "ports").severity == Severity::problem);
  CHECK(has(only(machine, "ports").what, "0 of 11 free; not 45000, 45001"));
  machine.ports.not_free = {45003, 45004};
  CHECK(only(machine, "ports").severity == Severity::note);
  CHECK(only(machine, "ports", {10u, ""}).severity == Severity::note);  // nine are needed
  CHECK(only(machine, "ports", {11u, ""}).severity == Severity::problem);
  CHECK(has(only(machine, "ports", {11u, ""}).what, "9 of 11 free; not 45003, 45004, 10 needed"));
}

TEST_CASE("doctor: the way to a root on another machine") {
  Machine machine = with_root("10.0.0.9", ip("10.0.0.5"), Reply::refused);
  std::string text = praise(machine, "root", root_plan);
  CHECK(has(text, "head is 10.0.0.9:29500, from 10.0.0.5 of eth0: the machine answers"));
  CHECK(has(text, "ranks here would listen for their peers at 10.0.0.5 of eth0"));
  machine = with_root("10.0.0.9", ip("10.0.0.5"), Reply::listening);
  CHECK(has(praise(machine, "root", root_plan), "something listens there"));
  machine = with_root("10.0.0.9", ip("10.0.0.5"), Reply::silent);
  CHECK(only(machine, "root", root_plan).severity == Severity::warning);
  CHECK(has(only(machine, "root", root_plan).why, "firewall"));
  machine = with_root("10.0.0.9", std::nullopt, Reply::unreachable);
  machine.root.paths[0].error = "Network is unreachable";
  CHECK(only(machine, "root", root_plan).severity == Severity::problem);
  CHECK(has(only(machine, "root", root_plan).what, "Network is unreachable"));
  // Another address of the name works.
  machine.root.paths.push_back({ip("10.0.0.10"), ip("10.0.0.5"), Reply::refused, ""});
  CHECK(complaints(machine, "root", root_plan).empty());
}

TEST_CASE("doctor: a root on this machine") {
  Machine machine = with_root("127.0.1.1", ip("127.0.0.1"), Reply::refused);
  const std::string text = praise(machine, "root", root_plan);
  CHECK(has(text, "the port is free for rank 0"));
  CHECK(has(text, "ranks here would listen for their peers at 10.0.0.5 of eth0"));
  machine.root.paths[0].reply = Reply::listening;
  CHECK(only(machine, "root", root_plan).severity == Severity::problem);
  CHECK(has(only(machine, "root", root_plan).what, "listens there already"));
  machine.root.paths[0].reply = Reply::refused;
  CHECK(only(machine, "root", {std::nullopt, "head:40000"}).severity == Severity::note);
  // Without a secret all ranks are here.
  machine.variables.clear();
  CHECK(has(praise(machine, "root", root_plan), "at 127.0.0.1 of lo"));
}

TEST_CASE("doctor: a root that cannot be, and one that contradicts other variables") {
  Machine machine = good_machine();
  machine.root.name_error = "the name head cannot be resolved: Name or service not known";
  CHECK(only(machine, "root", root_plan).severity == Severity::problem);
  CHECK(has(only(machine, "root", root_plan).what, "cannot be resolved"));
  CHECK(only(good_machine(), "root", {std::nullopt, "head"}).severity == Severity::problem);
  CHECK(complaints(machine, "root", {std::nullopt, "unix:@a"}).empty());
  machine = with_root("10.0.0.9", ip("10.0.0.5"), Reply::refused);
  machine.variables.clear();
  CHECK(has(only(machine, "root", root_plan).what, "no secret"));
  CHECK(has(only(machine, "root", root_plan).fix, "RONDO_SECRET"));
  machine.variables = {{"RONDO_SECRET", "s"}, {"RONDO_TRANSPORT", "shm"}};
  CHECK(has(only(machine, "root", root_plan).what, "RONDO_TRANSPORT=shm"));
  machine.variables = {{"RONDO_SECRET", "s"}, {"RONDO_INTERFACE", "ib0"}};
  CHECK(has(only(machine, "root", root_plan).what, "RONDO_INTERFACE=ib0"));
}
