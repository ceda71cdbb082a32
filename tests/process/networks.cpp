// Which address a rank gives its peers, with real networks: two network namespaces stand for two machines.
#include <doctest/doctest.h>

#include "../skip.hpp"
#include "machines.hpp"

using namespace rondo::test;

namespace {

// Rank 1, over there, must connect to rank 2, here, and would find only itself at a loopback address.
const std::string three_ranks = two_machines + R"sh(
export WORLD_SIZE=3 RONDO_LOG=info RONDO_TRANSPORT=$TRANSPORT
RANK=1 $there $PROGRAM & one=$!
RONDO_INTERFACE=$LIST RANK=2 $PROGRAM & two=$!
code=0
RANK=0 $PROGRAM || code=$?
wait $one || code=$?
wait $two || code=$?
kill $other
exit $code
)sh";

constexpr const char* small_bench = RONDO_EXE " bench all_reduce -e 8 --iterations 20";

Ended on_two_machines(const std::string& list, const std::string& program = small_bench,
                      const std::string& transport = "auto", const Cable& cable = ipv4) {
  return run({"unshare", "-n", "-m", "sh", "-c", three_ranks},
             {"PROGRAM=" + program, "LIST=" + list, "TRANSPORT=" + transport, "NET1=" + cable.here,
              "NET2=" + cable.there, "FLAGS=" + cable.flags},
             40);
}

bool says(const Ended& ended, const std::string& text) { return ended.err.find(text) != std::string::npos; }

Ended three_here(const std::vector<std::string>& environment) {
  return run({RONDO_EXE, "bench", "all_reduce", "-n", "3", "-e", "8", "--iterations", "20"}, environment);
}

}  // namespace

TEST_CASE("networks: no rank gives another machine its loopback address, docker0's or a link-local one") {
  if (!has_networks()) SKIP_TEST("needs root, ip, unshare and network namespaces");
  const auto ended = on_two_machines("");
  CAPTURE(ended.err);
  CHECK(ended.code == 0);
  CHECK(says(ended, "rondo[1] info: listens for its peers at 10.77.0.2:"));
  CHECK(says(ended, "rondo[2] info: listens for its peers at 10.77.0.1:"));
  // One kernel, but abstract Unix sockets do not lead from one network namespace to another.
  CHECK(says(ended, "rondo[0] info: transport tcp: the ranks cannot share memory: rank "));
  CHECK(says(ended, "another network namespace"));
  CHECK(ended.out.find("3 ranks over tcp") != std::string::npos);
}

TEST_CASE("networks: naming an interface is not enough for its link-local address to be taken") {
  if (!has_networks()) SKIP_TEST("needs root, ip, unshare and network namespaces");
  const auto by_name = on_two_machines("auto0");
  CAPTURE(by_name.err);
  CHECK(by_name.code == 2);
  CHECK(says(by_name, "RONDO_INTERFACE=auto0: allows no address of this machine"));
  CHECK(says(by_name, "auto0 (169.254.7.1)"));
  CHECK_FALSE(by_name.too_late);
}

TEST_CASE("networks: IPv6 only") {
  if (!has_networks()) SKIP_TEST("needs root, ip, unshare and network namespaces");
  const auto ended = on_two_machines("", small_bench, "auto", ipv6);
  if (says(ended, "disabled on nexthop device") || says(ended, "IPv6 is disabled"))
    SKIP_TEST("no IPv6 in this kernel");
  CAPTURE(ended.err);
  CHECK(ended.code == 0);
  CHECK(says(ended, "rondo[1] info: listens for its peers at [fd77::2]:"));
  CHECK(says(ended, "rondo[2] info: listens for its peers at [fd77::1]:"));
  CHECK(ended.out.find("3 ranks over tcp") != std::string::npos);
}

TEST_CASE("networks: where shm is a must, ranks of different networks end with the reason") {
  if (!has_networks()) SKIP_TEST("needs root, ip, unshare and network namespaces");
  const auto ended = on_two_machines("", small_bench, "shm");
  CAPTURE(ended.err);
  CHECK(ended.code == 3);
  CHECK(ended.seconds < 5);
  size_t told = 0;
  for (const std::string& line : lines(ended.err))
    told += line.find("RONDO_TRANSPORT=shm, but the ranks cannot share memory: rank ") != line.npos;
  CHECK(told == 3);
}

TEST_CASE("networks: a part of a communicator meets where all its ranks can go, whoever leads it") {
  if (!has_networks()) SKIP_TEST("needs root, ip, unshare and network namespaces");
  const auto ended = on_two_machines("", MEMBER_EXE " split");
  CAPTURE(ended.err);
  CHECK(ended.code == 0);
  for (const char* leader : {"0", "1", "2"})
    CHECK(ended.out.find(std::string("led by ") + leader + ": the ranks are 3") != std::string::npos);
}

TEST_CASE("networks: where RONDO_INTERFACE makes it do so, the job ends with the reason") {
  if (!has_networks()) SKIP_TEST("needs root, ip, unshare and network namespaces");
  const auto ended = on_two_machines("lo");
  CAPTURE(ended.err);
  CHECK(ended.code == 2);
  CHECK(says(ended, "RONDO_INTERFACE"));
  CHECK(says(ended, "rank 2"));
  CHECK_FALSE(ended.too_late);
}

TEST_CASE("networks: RONDO_PORTS says where to listen, one port for each rank") {
  const auto enough = three_here({"RONDO_PORTS=45700-45702", "RONDO_LOG=info"});
  CHECK(enough.code == 0);
  CHECK(says(enough, "127.0.0.1:45700"));
  CHECK(says(enough, "127.0.0.1:45701"));
  CHECK(says(enough, "127.0.0.1:45702"));
  const auto few = three_here({"RONDO_PORTS=45700"});
  CHECK(few.code == 3);
  CHECK(says(few, "all ports from 45700 to 45700"));
  CHECK(says(few, "RONDO_PORTS needs one for each rank of a machine"));
  CHECK(three_here({"RONDO_PORTS=45700-"}).code == 2);
}

TEST_CASE("networks: an interface that is not there is an error that lists those that are") {
  const auto ended = three_here({"RONDO_INTERFACE=rondo7"});
  CHECK(ended.code == 2);
  CHECK(says(ended, "RONDO_INTERFACE=rondo7"));
  CHECK(says(ended, "lo (127.0.0.1)"));
}
