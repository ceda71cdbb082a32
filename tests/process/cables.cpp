// A network that falls silent, between two network namespaces that stand for two machines: no connection ends, and
// still all ranks on both sides learn of it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <tuple>

#include "../skip.hpp"
#include "machines.hpp"
#include "workers.hpp"

using namespace rondo::test;

namespace {

constexpr uint32_t world = 4;
constexpr double patience_s = 2, slack_s = 1.5;

// Ranks 0 and 2 run here, 1 and 3 over there. When all run, $CUT comes, and is said; in the end, what each rank said.
const std::string four_ranks = two_machines + R"sh(
export WORLD_SIZE=4 RONDO_TIMEOUT=20 RONDO_HEARTBEAT=2
RANK=0 $PROGRAM >/mnt/0 2>&1 & zero=$!
RANK=2 $PROGRAM >/mnt/2 2>&1 & two=$!
RANK=1 $there $PROGRAM >/mnt/1 2>&1 & one=$!
RANK=3 $there $PROGRAM >/mnt/3 2>&1 & three=$!
for rank in 0 1 2 3; do while ! grep -q runs /mnt/$rank; do sleep 0.02; done; done
echo cut $(cut -d' ' -f1 /proc/uptime)
eval "$CUT"
set +e
for pid in $zero $one $two $three; do wait $pid; codes="$codes $?"; done
kill $other
for rank in 0 1 2 3; do sed "s/^/[$rank] /" /mnt/$rank; done
echo codes $codes
)sh";

struct Cut {
  const char *what, *command;
};
// A frame for another's hardware address is dropped where it arrives: a wire that swallows everything.
#define SWALLOW_TO_THERE "ip neigh replace ${NET2%/*} lladdr 02:00:00:00:00:99 nud permanent dev eth0"
#define SWALLOW_TO_HERE "$there ip neigh replace ${NET1%/*} lladdr 02:00:00:00:00:99 nud permanent dev eth1"
const Cut cuts[] = {
    {"the interface of rank 0's machine is set down", "ip link set eth0 down"},
    {"the interface of the other machine is set down", "$there ip link set eth1 down"},
    {"the wire swallows everything", SWALLOW_TO_THERE "; " SWALLOW_TO_HERE},
    {"the wire swallows what comes from rank 0's machine", SWALLOW_TO_THERE},
    {"the wire swallows what comes from the other machine", SWALLOW_TO_HERE},
};

// As if it had run alone.
Ended of_rank(const Ended& all, uint32_t rank) {
  Ended own;
  const std::string prefix = fmt::format("[{}] ", rank);
  for (const std::string& line : lines(all.out))
    if (line.starts_with(prefix)) own.out += line.substr(prefix.size()) + "\n";
  return own;
}

// The ranks here lose one that is there, those there lose rank 0, through which they hear of all others.
void check_told(const Ended& ended, uint32_t rank, double cut) {
  CAPTURE(rank);
  CAPTURE(ended.out);
  const auto told = report(ended, "error");
  REQUIRE(told);
  CHECK(told->code == "peer_lost");
  const bool is_here = rank % 2 == 0;
  CHECK((is_here ? told->peer == 1 || told->peer == 3 : told->peer == 0));
  CHECK(has(told->text, fmt::format("rank {} (pid ", told->peer)));
  CHECK(told->at - cut < patience_s + slack_s);
  CHECK(number_after(ended, "destroyed") >= 0);
  CHECK(number_after(ended, "destroyed") < 1);
}

// From the clock of /proc/uptime to that of the reports.
double clock_difference() {
  double uptime = 0;
  std::ifstream("/proc/uptime") >> uptime;
  return seconds_now() - uptime;
}

// All at once, each with two machines of its own.
void check_cuts(const std::string& program) {
  std::vector<std::unique_ptr<Command>> running;
  for (const Cut& cut : cuts)
    running.push_back(std::make_unique<Command>(
        std::vector<std::string>{"unshare", "-n", "-m", "sh", "-c", four_ranks},
        std::vector<std::string>{"PROGRAM=" + program, fmt::format("CUT={}", cut.command),
                                 "NET1=" + ipv4.here, "NET2=" + ipv4.there, "FLAGS="}));
  const double difference = clock_difference();
  for (size_t i = 0; i < running.size(); i++) {
    CAPTURE(cuts[i].what);
    const auto ended = running[i]->wait(40);
    CAPTURE(ended.out);
    CAPTURE(ended.err);
    CHECK(has(ended.out, "codes 3 3 3 3"));
    const double cut = number_after(ended, "cut") + difference;
    for (uint32_t rank = 0; rank < world; rank++) check_told(of_rank(ended, rank), rank, cut);
  }
}

}  // namespace

TEST_CASE("cables: ranks in an all-reduce learn of a network that falls silent, on both sides") {
  if (!has_networks()) SKIP_TEST("needs root, ip, unshare and network namespaces");
  check_cuts(WORKER_EXE " loop 0 1000");
}

TEST_CASE("cables: idle ranks learn of it too, and hear of it at their next call") {
  if (!has_networks()) SKIP_TEST("needs root, ip, unshare and network namespaces");
  check_cuts(WORKER_EXE " idle 3000 1000");
}
