// Which transport a job of real processes uses, and that it is right, in every kind of surroundings.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../folder.hpp"
#include "../skip.hpp"
#include "../text.hpp"
#include "base/random.hpp"
#include "command.hpp"

using namespace rondo::test;

namespace {

using Words = std::vector<std::string>;
const std::string bench = RONDO_EXE " bench all_reduce";

// Each rank runs `script` in a shell of its own.
Words ranks(int world, const std::string& script) {
  return {RONDO_EXE, "run", "-n", std::to_string(world), "--", "/bin/sh", "-c", script};
}

nlohmann::json bench_json(const Words& more) {
  const Folder folder;
  Words words{RONDO_EXE, "bench", "all_reduce", "-e", "1M", "-f", "64", "--iterations", "5"};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--json", folder.path + "/json"});
  const auto ended = run(words, {}, 60);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  return nlohmann::json::parse(std::ifstream(folder.path + "/json"));
}

// What a trainer logs on three ranks: the loss of each step or epoch, then what it comes to in the end.
Words losses_of(Words program, const std::string& transport, const std::string& algorithm) {
  const Folder folder;
  std::ofstream text(folder.path + "/text");  // 60 kB
  for (int i = 0; i < 2500; ++i) text << fmt::format("{} times {} is {}.\n", i, i, i * i);
  text.close();
  std::ranges::replace(program, "TEXT", folder.path + "/text");
  program.insert(program.begin(), {RONDO_EXE, "run", "-n", "3", "--"});
  program.insert(program.end(), {"--out", folder.path, "--transport", transport});
  const auto ended = run(program, {"RONDO_ALGORITHM=" + algorithm}, 60);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  Words losses;
  for (const char* name : {"/log.jsonl", "/mlp.jsonl"}) {
    std::ifstream file(folder.path + name);
    for (std::string line; std::getline(file, line);) {
      const auto entry = nlohmann::json::parse(line);
      for (const char* key : {"loss", "held_out_loss", "test_accuracy"})
        if (entry.contains(key) && (entry.contains("final") || key == std::string("loss")))
          losses.push_back(entry[key].dump());
      if (entry.contains("final")) CHECK(entry["transport"] == transport);
    }
  }
  return losses;
}

bool may_unshare() {
  return ::geteuid() == 0 && run({"unshare", "-p", "-f", "-i", "-m", "-n", "true"}).code == 0;
}

// A job of two, rank 1 behind `wrapper`.
Ended two(const std::string& wrapper, const Words& environment = {},
          const std::string& sizes = "-e 1M -f 64") {
  Words variables{"WORLD_SIZE=2", "RONDO_SECRET=s", "RONDO_INIT_TIMEOUT=10", "RONDO_LOG=info",
                  "RONDO_ROOT=file:/tmp/rondo-test-root-" + std::to_string(rondo::random_number())};
  variables.insert(variables.end(), environment.begin(), environment.end());
  const std::string script = bench + " " + sizes + " --iterations 5";
  return run({"/bin/sh", "-c",
              fmt::format("RANK=1 {} sh -c '{}' & RANK=0 {}; code=$?; wait $! || code=$?; exit $code",
                          wrapper, script, script)},
             variables, 30);
}

}  // namespace

TEST_CASE("transports: on one machine auto means shm, and the JSON says what was used") {
  CHECK(bench_json({"-n", "3"})["transport"] == "shm");
  CHECK(bench_json({"-n", "3", "--transport", "shm"})["transport"] == "shm");
  CHECK(bench_json({"-n", "3", "--transport", "tcp"})["transport"] == "tcp");
  CHECK(bench_json({"-n", "1"})["transport"] == "local");
}

TEST_CASE("transports: every operation is right over both, with private and with allocated memory") {
  for (const std::string transport : {"tcp", "shm"})
    for (const std::string memory : {"private", "allocated"})
      for (const std::string operation :
           {"all_reduce", "reduce_scatter", "reduce_scatter_v", "reduce", "all_gather", "all_gather_v",
            "broadcast", "gather", "scatter", "all_to_all", "all_to_all_v", "send_recv", "barrier"}) {
        CAPTURE(transport);
        CAPTURE(memory);
        CAPTURE(operation);
        const auto ended = run({RONDO_EXE, "bench", operation, "-n", "5", "--transport", transport,
                                "--memory", memory, "-b", "4", "-e", "3M", "-f", "37", "--iterations", "3"},
                               {}, 60);
        CHECK(ended.code == 0);
        CHECK(has(ended.out, fmt::format("5 ranks over {}, {} memory", transport, memory)));
      }
}

TEST_CASE("transports: the JSON of the bench says which memory") {
  const auto json = bench_json({"-n", "4", "--memory", "allocated", "-b", "4", "--type", "bf16"});
  CHECK(json["memory"] == "allocated");
  CHECK(json["rows"].size() == 8);
  for (const auto& row : json["rows"]) CHECK(row["wrong"] == 0);
  CHECK(bench_json({"-n", "1", "--memory", "allocated"})["memory"] == "allocated");
  CHECK(bench_json({"-n", "2"})["memory"] == "private");
}

TEST_CASE("transports: flipping one element of allocated memory is seen") {
  const auto ended = run({RONDO_EXE, "bench", "all_reduce", "-n", "3", "--memory", "allocated", "-b", "1M",
                          "-e", "1M", "--iterations", "3", "--inject-wrong"});
  CHECK(ended.code == 1);
}

TEST_CASE("transports: 64 descriptors are enough for ranks with allocated memory") {
  const auto ended = run(
      ranks(8, "ulimit -n 64 && exec " + bench + " --memory allocated -b 1M -e 1M --iterations 5"), {}, 60);
  CHECK_MESSAGE(ended.code == 0, ended.err);
}

TEST_CASE("transports: with the same algorithm the trainers' losses are the same bits over tcp and shm") {
  const Words gpt{TRAINER_EXE, "--data",    "TEXT", "--channels",      "32", "--context", "64", "--steps",
                  "10",        "--buckets", "3",    "--micro-batches", "2"},
      mlp{MLP_EXE, "--data", "generated", "--hidden", "40", "--epochs", "1", "--batch", "512"};
  for (const Words& program : {gpt, mlp}) {
    CAPTURE(program[0]);
    const auto ring = losses_of(program, "tcp", "ring"), direct = losses_of(program, "tcp", "direct");
    CHECK(ring.size() == (program == gpt ? 11 : 2));
    CHECK(losses_of(program, "shm", "ring") == ring);
    CHECK(losses_of(program, "shm", "direct") == direct);
    CHECK(ring != direct);  // the comparison is not blind: they add in different orders
  }
}

TEST_CASE("transports: 64 ranks share memory") {
  for (const std::string memory : {"private", "allocated"}) {
    const auto ended =
        run({RONDO_EXE, "bench", "all_reduce", "-n", "64", "--transport", "shm", "--memory", memory, "-b",
             "1000", "-e", "600K", "-f", "600", "--iterations", "2", "--warmup", "0"},
            {}, 60);
    CHECK_MESSAGE(ended.code == 0, ended.err);
    CHECK(has(ended.out, "64 ranks over shm"));
  }
}

TEST_CASE("transports: 64 descriptors are enough for each of 32 ranks that share memory") {
  const auto ended = run(ranks(32, "ulimit -n 64 && exec " + bench +
                                       " --transport shm -e 64K -f 8192 --iterations 2 --warmup 0"),
                         {}, 60);
  CHECK_MESSAGE(ended.code == 0, ended.err);
  CHECK(has(ended.out, "32 ranks over shm"));
}

TEST_CASE("transports: other PID, IPC and mount namespaces, and a /dev/shm of 1 MiB, share memory") {
  if (!may_unshare()) SKIP_TEST("needs root and unshare");
  for (const std::string wrapper :
       {"unshare -p -f", "unshare -i", "unshare -m sh -c \"umount -l /dev/shm; exec \\\"\\$@\\\"\" x",
        "unshare -p -f -i -m sh -c \"mount -t tmpfs -o size=1M none /dev/shm; exec \\\"\\$@\\\"\" x"}) {
    CAPTURE(wrapper);
    const auto ended = two(wrapper, {"RONDO_TRANSPORT=shm"});
    CHECK_MESSAGE(ended.code == 0, ended.err);
    CHECK(has(ended.out, "2 ranks over shm"));
    CHECK(has(ended.err, "rondo[0] info: transport shm: all 2 ranks share memory"));
  }
}

TEST_CASE("transports: two ranks read each other's private memory where both may, and are right where not") {
  const std::string sizes = "-b 4M -e 12M -f 3";
  const auto can = [](const Ended& ended, int rank, int peer) {
    return has(ended.err, fmt::format("rondo[{}] debug: can read the private memory of rank {}", rank, peer));
  };
  const auto says_why = [](const Ended& ended, int rank, int peer) {
    return has(ended.err,
               fmt::format("rondo[{}] info: cannot read the private memory of rank {} (", rank, peer));
  };
  const Words debug{"RONDO_LOG=debug", "RONDO_TRANSPORT=shm"};
  const auto alike = two("env", debug, sizes);
  CHECK_MESSAGE(alike.code == 0, alike.err);
  if (!can(alike, 0, 1)) SKIP_TEST("processes may not read each other's memory here");
  CHECK(can(alike, 1, 0));
  const auto filtered = two(MEMBER_EXE " without_pulls", debug, sizes);
  CHECK_MESSAGE(filtered.code == 0, filtered.err);
  CHECK(can(filtered, 0, 1));
  CHECK(says_why(filtered, 1, 0));
  CHECK(has(filtered.err, "(Operation not permitted)"));
  // A process may not trace one that may do more.
  if (::geteuid() != 0 || run({"setpriv", "--bounding-set", "-all", "true"}).code != 0) return;
  const auto weaker = two("setpriv --bounding-set -all", debug, sizes);
  CHECK_MESSAGE(weaker.code == 0, weaker.err);
  CHECK(can(weaker, 0, 1));
  CHECK(says_why(weaker, 1, 0));
  if (!may_unshare()) return;
  const auto apart = two("unshare -p -f", debug, sizes);
  CHECK_MESSAGE(apart.code == 0, apart.err);
  CHECK(says_why(apart, 0, 1));
  CHECK(says_why(apart, 1, 0));
}

TEST_CASE("transports: what is set on rank 0 counts on every rank") {
  const auto ended = run(ranks(
      3, "test $RANK = 0 && t=tcp || t=shm; RONDO_TRANSPORT=$t exec " + bench + " -e 8 --iterations 2"));
  CHECK_MESSAGE(ended.code == 0, ended.err);
  CHECK(has(ended.out, "3 ranks over tcp"));
}

TEST_CASE("transports: a rank that stops in the exchange of memory is named to all within the init timeout") {
  const auto ended = run({RONDO_EXE, "run", "-n", "4", "--timeout", "15", "--", MEMBER_EXE, "stop", "2"},
                         {"RONDO_INIT_TIMEOUT=3"});
  CHECK(ended.code == 5);
  CHECK(ended.seconds < 3 + 0.4 + 2);
  for (const char* rank : {"[0] ", "[1] ", "[3] "}) {
    CAPTURE(ended.err);
    CHECK(has(ended.err, std::string(rank) + "not joined: "));
  }
  CHECK(has(ended.err, "rank 2 of 4 did not exchange shared memory with the others within 3.0 s"));
}

TEST_CASE("transports: a rank killed in the middle of an operation over shm is named by every other") {
  for (const std::string dying : {"0", "2"}) {
    CAPTURE(dying);
    // In a loop of operations of some ten milliseconds; the dying one says when it is about to be killed.
    const auto ended = run(
        ranks(4, fmt::format("{} --transport shm -b 8M -e 8M --iterations 100000 --in-place only & pid=$!; "
                             "test $RANK = {} && sleep 1 && kill -9 $pid; wait $pid",
                             bench, dying)),
        {}, 30);
    CAPTURE(ended.err);
    CHECK(ended.code == 137);
    CHECK(ended.seconds < 1 + 2);
    for (const std::string rank : {"0", "1", "2", "3"}) {
      if (rank == dying) continue;
      const auto all = lines(ended.err);
      CHECK(std::ranges::any_of(all, [&](const std::string& line) {
        return has(line, fmt::format("[{}] rondo bench: ", rank)) &&
               has(line, fmt::format("rank {} (pid ", dying)) && has(line, "died or was killed");
      }));
    }
  }
}

TEST_CASE(
    "transports: ranks that give different nodes meet over TCP, and hierarchical schedules see the nodes") {
  for (const std::string operation : {"all_reduce", "reduce_scatter", "all_gather", "broadcast"}) {
    CAPTURE(operation);
    const auto ended = run(ranks(5, "RONDO_NODE=$((RANK % 2)) exec " RONDO_EXE " bench " + operation +
                                        " -b 4 -e 300K -f 37 --iterations 3 --algorithm hierarchical"),
                           {"RONDO_LOG=info"}, 60);
    CHECK_MESSAGE(ended.code == 0, ended.err);
    CHECK(has(ended.out, "5 ranks over tcp"));
    CHECK(has(ended.out, "hierarchical |"));
    CHECK(has(ended.err + ended.out, "has another RONDO_NODE than rank 0"));
  }
}

TEST_CASE("transports: rondo tune writes a table, which a job like that one runs by, and another does not") {
  const Folder folder;
  const std::string file = folder.path + "/tuning";
  const auto tuned =
      run({RONDO_EXE, "tune", "-n", "2", "--transport", "tcp", "-e", "64", "-o", file}, {}, 60);
  REQUIRE_MESSAGE(tuned.code == 0, tuned.err);
  std::ifstream written(file);
  std::string first;
  CHECK(std::getline(written, first));
  CHECK(first == "# rondo tuning: 2 ranks, tcp");
  std::ofstream(file) << first << "\nall_reduce 100 double_tree\nall_reduce max tree_of_no_kind\n";
  const std::string variable = "RONDO_TUNING=" + file;
  const auto chosen = [&](const std::string& transport) {
    return run({RONDO_EXE, "bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--iterations", "3",
                "--transport", transport},
               {variable}, 60);
  };
  const auto refused = chosen("tcp");
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "line 3"));
  CHECK(has(refused.err, file));
  std::ofstream(file) << first << "\nall_reduce 100 double_tree\n";
  CHECK(has(chosen("tcp").out, "double_tree |"));
  CHECK(has(chosen("shm").out, "one_shot |"));
}
