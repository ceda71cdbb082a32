// RONDO_INTERFACE and RONDO_PORTS, on machines that exist on paper only.
#include "bootstrap/interfaces.hpp"

#include <doctest/doctest.h>

#include <utility>

#include "base/port_range.hpp"

using namespace rondo;
using namespace rondo::bootstrap;

namespace {

asio::ip::address ip(const char* text) { return asio::ip::make_address(text); }

const std::vector<NetworkAddress> machine{
    {"lo", ip("127.0.0.1")},   {"docker0", ip("172.17.0.1")}, {"usb0", ip("169.254.7.7")},
    {"eth0", ip("10.0.0.5")},  {"eth1", ip("192.168.1.5")},   {"lo", ip("::1")},
    {"eth0", ip("fe80::1%3")}, {"eth0", ip("fd00::5")},       {"eth10", ip("10.10.0.5")}};

std::string chosen(const char* list, const Situation& situation,
                   const std::vector<NetworkAddress>& all = machine) {
  const auto choice = choose_address(all, list, situation);
  return choice ? choice->ip.to_string() : "error: " + choice.error().message;
}

const Situation from_eth1{ip("192.168.1.5"), false};
const Situation from_loopback{ip("127.0.1.1"), false};
const Situation one_machine{std::nullopt, true};

}  // namespace

TEST_CASE("interfaces: by itself a rank takes the address from which it reached rank 0") {
  CHECK(chosen("", from_eth1) == "192.168.1.5");
  CHECK(chosen("", {ip("fd00::5"), false}) == "fd00::5");
  CHECK(chosen("", one_machine) == "127.0.0.1");
  CHECK(chosen("", {ip("127.0.1.1"), true}) == "127.0.1.1");
}

TEST_CASE("interfaces: loopback is not for other machines; nor are docker0 and link-local addresses") {
  CHECK(chosen("", from_loopback) == "10.0.0.5");
  CHECK(chosen("", {ip("::1"), false}) == "fd00::5");
  // Better the other family than none, and loopback where there is no network.
  CHECK(chosen("", {ip("::1"), false}, {{"lo", ip("::1")}, {"eth0", ip("10.0.0.5")}}) == "10.0.0.5");
  CHECK(chosen("", from_loopback, {{"lo", ip("127.0.0.1")}, {"docker0", ip("172.17.0.1")}}) == "127.0.1.1");
  CHECK(chosen("", one_machine, {{"lo", ip("::1")}}) == "::1");
}

TEST_CASE("interfaces: the choice says why") {
  const auto why = [](const char* list, const Situation& situation) {
    return choose_address(machine, list, situation)->why;
  };
  CHECK(why("", from_eth1) == "from here rank 0 is reached");
  CHECK(why("eth", from_eth1) == "from here rank 0 is reached");
  CHECK(why("", one_machine) == "all ranks are on this machine");
  CHECK(why("", from_loopback) ==
        "rank 0 is on this machine, and this comes first of what other machines can reach");
  CHECK(why("=eth10", from_loopback) == "RONDO_INTERFACE==eth10");
  CHECK(why("docker0", from_loopback) == "RONDO_INTERFACE=docker0");
}

TEST_CASE("interfaces: every form of the list") {
  CHECK(chosen("eth1", from_loopback) == "192.168.1.5");
  CHECK(chosen("eth", from_loopback) == "10.0.0.5");
  CHECK(chosen("eth", from_eth1) == "192.168.1.5");  // what fits already stays
  CHECK(chosen("=eth1", from_loopback) == "192.168.1.5");
  CHECK(chosen("eth1", {ip("10.0.0.5"), false}) == "192.168.1.5");
  CHECK(chosen("=eth10", from_loopback) == "10.10.0.5");
  CHECK(chosen("=ib0,eth10", from_loopback) == "10.10.0.5");
  CHECK(chosen("^lo,docker,eth0", from_loopback) == "192.168.1.5");
  CHECK(chosen("^=eth1", from_eth1) == "10.0.0.5");
  CHECK(chosen("^eth1", from_eth1) == "10.0.0.5");  // and eth10 stays out as well
  CHECK(chosen("10.10.0.0/16", from_eth1) == "10.10.0.5");
  CHECK(chosen("10.0.0.0/8", from_eth1) == "10.0.0.5");
  CHECK(chosen("10.0.0.5", from_eth1) == "10.0.0.5");
  CHECK(chosen("fd00::/8", from_eth1) == "fd00::5");
  CHECK(chosen("^10.0.0.0/8,lo", from_loopback) == "192.168.1.5");
  CHECK(chosen("192.168.1.4/31", from_loopback) == "192.168.1.5");
  CHECK(chosen("^docker", one_machine) == "127.0.0.1");
}

TEST_CASE("interfaces: who names docker0, lo or a link-local address gets it") {
  CHECK(chosen("docker0", from_eth1) == "172.17.0.1");
  CHECK(chosen("lo", from_eth1) == "127.0.0.1");
  CHECK(chosen("169.254.0.0/16", from_eth1) == "169.254.7.7");
  CHECK(chosen("usb0", from_eth1).starts_with("error:"));
}

TEST_CASE("interfaces: a list that fits nothing is an error that says what there is") {
  const std::string text = chosen("ib0", from_eth1);
  for (const char* part : {"RONDO_INTERFACE=ib0", "eth0 (10.0.0.5)", "lo (127.0.0.1)", "eth10 (10.10.0.5)"})
    CHECK(text.find(part) != text.npos);
  CHECK(chosen("10.0.0.6", from_eth1).starts_with("error:"));
  CHECK(chosen("=eth", from_eth1).starts_with("error:"));
  CHECK(chosen("^eth,lo", from_eth1).starts_with("error:"));  // docker0 is left, but nobody asked for it
}

TEST_CASE("interfaces: a list that is none is an error that names the item and what is allowed") {
  // Each would allow eth1 if it was not refused, or would fit nothing for another reason.
  const std::pair<const char*, const char*> lists[]{{"^", ""},
                                                    {"=", ""},
                                                    {",", ""},
                                                    {",eth1", ""},
                                                    {"eth1,", ""},
                                                    {"eth0,,eth1", ""},
                                                    {" ", " "},
                                                    {"eth0, eth1", " eth1"},
                                                    {"eth1 ,eth0", "eth1 "},
                                                    {" eth1", " eth1"},
                                                    {"eth1\n", "eth1\n"},
                                                    {"^ lo", " lo"},
                                                    {"eth1,10.0.0.0/8 ", "10.0.0.0/8 "},
                                                    {"eth1,^eth0", "^eth0"},
                                                    {"^lo,^eth0", "^eth0"},
                                                    {"eth0,=eth1", "=eth1"},
                                                    {"=eth0,=eth1", "=eth1"},
                                                    {"^^lo", "^lo"},
                                                    {"==eth1", "=eth1"},
                                                    {"=^lo", "^lo"},
                                                    {"^=^lo", "^lo"},
                                                    {"eth1,et^h", "et^h"},
                                                    {"eth1,eth=", "eth="},
                                                    {"eth1,10.0.0.0/33", "10.0.0.0/33"},
                                                    {"10.0.0.0/", "10.0.0.0/"},
                                                    {"10.0.0.0/x", "10.0.0.0/x"},
                                                    {"eth0/8", "eth0/8"},
                                                    {"fd00::/129", "fd00::/129"}};
  for (const auto& entry : lists) {
    const std::string list = entry.first, item = entry.second;
    CAPTURE(list);
    const std::string wrong = chosen(list.c_str(), from_eth1);
    CHECK(wrong.starts_with("error: RONDO_INTERFACE=" + list + ": \"" + item + "\" "));
    CHECK(wrong.find("allowed are interface names") != wrong.npos);
    CHECK(wrong.find("this machine") == wrong.npos);
  }
}

TEST_CASE("interfaces: this machine has some") {
  const auto all = machine_addresses();
  CHECK(std::any_of(all.begin(), all.end(), [](const auto& at) { return at.ip.is_loopback(); }));
}

TEST_CASE("ports: a port or a range") {
  CHECK(*parse_ports("") == PortRange{});
  CHECK(*parse_ports("45000") == PortRange{45000, 45000});
  CHECK(*parse_ports("45000-45010") == PortRange{45000, 45010});
  CHECK(parse_ports("45000-45010")->size() == 11);
  CHECK(parse_ports("1-65535")->size() == 65535);
  for (const char* text : {"0", "-", "1-", "-1", "2-1", "0-5", "5-65536", "a", "1-2-3", " 1", "1 - 2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_ports(text).ok());
  }
}
