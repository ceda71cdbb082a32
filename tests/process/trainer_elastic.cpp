// The elastic trainer: ranks are killed at a random moment, others come, and nothing of the training is lost.
#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "../folder.hpp"
#include "base/random.hpp"
#include "command.hpp"

using namespace rondo::test;

namespace {

constexpr size_t steps = 60, batch = 32;

std::string trainer(const Folder& folder, const std::string& options) {
  return "exec " TRAINER_EXE " --data generated --channels 32 --context 64 --lr 0.01 --steps " +
         std::to_string(steps) + " --out " + folder.path + " " + options;
}

// So many processes, which leave their process ids in the folder.
std::vector<std::string> processes(size_t count, const Folder& folder, const std::string& script) {
  const std::string note = "echo $$ > " + folder.path + "/pid.$RANK; ";
  return {RONDO_EXE, "run", "--elastic", "-n", std::to_string(count), "--", "/bin/sh", "-c", note + script};
}

std::vector<std::string> training(const Folder& folder, const std::string& options) {
  return processes(4, folder, trainer(folder, options));
}

// `ranks`, and one process more, which becomes rank 3 of 4 when `sign` is in the log.
std::vector<std::string> training_with_newcomer(const Folder& folder, size_t ranks, const std::string& sign,
                                                const std::string& options,
                                                const std::string& own_options = "") {
  const std::string all = "--elastic --record " + folder.path + "/samples.jsonl " + options + " ";
  const std::string newcomer =
      "until grep -q " + sign + " " + folder.path + "/log.jsonl; do sleep 0.02; done; echo 1 > " +
      folder.path + "/newcomers; export RANK=3 WORLD_SIZE=4; " + trainer(folder, all + own_options);
  return processes(ranks + 1, folder,
                   "if test $RANK = " + std::to_string(ranks) + "; then " + newcomer +
                       "; fi; export WORLD_SIZE=" + std::to_string(ranks) + "; " + trainer(folder, all));
}

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> entries;
  std::ifstream file(path);
  // Others may be writing: the last line need not be complete.
  for (std::string line; std::getline(file, line) && !file.eof();)
    entries.push_back(nlohmann::json::parse(line));
  return entries;
}

std::vector<double> losses(const std::vector<nlohmann::json>& log) {
  std::vector<double> list;
  for (const auto& line : log)
    if (line.contains("loss")) list.push_back(line["loss"]);
  return list;
}

pid_t pid_of(const Folder& folder, int rank) {
  pid_t pid = 0;
  std::ifstream(folder.path + "/pid." + std::to_string(rank)) >> pid;
  return pid;
}

// Of what a step was last dealt to, which are the fewest ranks: each sequence of the batch once.
void check_samples(const Folder& folder) {
  std::map<size_t, std::map<size_t, std::vector<nlohmann::json>>> by_step;  // and by number of ranks
  for (const auto& line : lines_of(folder.path + "/samples.jsonl"))
    by_step[line["step"]][line["ranks"]].push_back(line);
  REQUIRE(by_step.size() == steps);
  for (const auto& dealt : by_step) {
    const size_t step = dealt.first;
    CAPTURE(step);
    std::multiset<size_t> sequences;
    for (const auto& part : dealt.second.begin()->second)
      for (size_t i = 0; i < part["count"]; i++) sequences.insert(part["first"].get<size_t>() + i);
    CHECK(sequences.size() == batch);
    for (size_t i = 0; i < batch; i++) CHECK(sequences.count(i) == 1);
  }
}

// The same training on as many ranks, of which none is lost.
const std::vector<double>& undisturbed() {
  static const std::vector<double> list = [] {
    const Folder folder;
    REQUIRE(run(training(folder, ""), {}, 60).code == 0);
    return losses(lines_of(folder.path + "/log.jsonl"));
  }();
  return list;
}

// From how many ranks to how many, and whether newcomers were taken in between.
void check_log(const Folder& folder, size_t ranks, size_t left, bool with_newcomer) {
  const auto log = lines_of(folder.path + "/log.jsonl");
  size_t step = 0, shrunk = 0, grown = 0;
  for (const auto& line : log) {
    if (line.contains("loss")) {
      step++;
      CHECK(line["step"] == step);
    } else if (!line.contains("final")) {
      const bool less = line.contains("shrunk");
      (less ? shrunk : grown)++;
      CHECK(line["step"] == step + 1);
      CHECK((less ? line["ranks"] < ranks : line["ranks"] == ranks + 1));
      ranks = line["ranks"];
    }
  }
  CHECK(step == steps);
  CHECK(shrunk + grown >= 1);
  CHECK(grown == (with_newcomer ? 1 : 0));
  CHECK(ranks == left);
  REQUIRE(log.back().contains("final"));
  CHECK(log.back()["ranks"] == left);
  CHECK(log.back()["held_out_loss"] < 2.9);
  // A step lost, done twice or with other sequences would lead elsewhere; another order of sums does not.
  const auto learned = losses(log);
  REQUIRE(undisturbed().size() == steps);
  for (size_t i = 0; i < steps; i++) CHECK(learned[i] == doctest::Approx(undisturbed()[i]).epsilon(1e-3));
}

void wait_for_lines(const Folder& folder, size_t count) {
  for (int i = 0; i < 4000 && lines_of(folder.path + "/log.jsonl").size() < count; i++) ::usleep(5'000);
}

void wait_for_growth(const Folder& folder) {
  const auto has_grown = [&] {
    return std::ranges::any_of(lines_of(folder.path + "/log.jsonl"),
                               [](const auto& line) { return line.contains("grown"); });
  };
  for (int i = 0; i < 4000 && !has_grown(); i++) ::usleep(5'000);
}

void kill_rank(const Folder& folder, int rank) {
  REQUIRE(pid_of(folder, rank) > 0);
  ::kill(pid_of(folder, rank), SIGKILL);
}

void check_good_end(Command& command) {
  const auto ended = command.wait(60);
  INFO(ended.out << ended.err);
  REQUIRE(ended.code == 0);
}

// Of the one that came last.
void check_newcomer_worked(const Folder& folder) {
  const auto lines = lines_of(folder.path + "/samples.jsonl");
  CHECK(std::ranges::any_of(lines, [](const auto& line) { return line["ranks"] == 4 && line["rank"] == 3; }));
}

void lose(const std::vector<int>& victims, uint64_t seed, const std::string& options) {
  std::mt19937_64 random(seed);
  const Folder folder;
  Command command(training(folder, "--elastic --record " + folder.path + "/samples.jsonl " + options));
  for (const int victim : victims) {
    wait_for_lines(folder, lines_of(folder.path + "/log.jsonl").size() + 1 + random() % 20);
    ::usleep(useconds_t(random() % 20'000));
    kill_rank(folder, victim);
  }
  const auto ended = command.wait(60);
  INFO(ended.out << ended.err);
  REQUIRE(ended.code == 0);
  for (const int victim : victims)
    CHECK(ended.err.find("rank " + std::to_string(victim) + " failed: signal 9 (KILL); the others go on") !=
          std::string::npos);
  check_log(folder, 4, 4 - victims.size(), false);
  check_samples(folder);
  CHECK(std::filesystem::file_size(folder.path + "/sample.txt") > 500);
  CHECK(std::filesystem::file_size(folder.path + "/loss.svg") > 500);
}

std::vector<std::string> results(const Folder& folder) {
  std::vector<std::string> list;
  for (const char* name : {"log.jsonl", "sample.txt", "loss.svg"}) {
    std::ifstream file(folder.path + "/" + name, std::ios::binary);
    list.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    CHECK(list.back().size() > 500);
  }
  return list;
}

// 'T': stopped; 0: gone.
char process_state(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? '\0' : text[name_end + 2];
}

bool wait_for_state(pid_t pid, char state) {
  for (int i = 0; i < 6000 && process_state(pid) != state; i++) ::usleep(5'000);
  return process_state(pid) == state;
}

// They are stopped in the middle of the training, and continued when the others have ended it.
void wake_late(int ranks, const std::set<int>& sleepers) {
  const Folder folder;
  const std::string options = "--elastic --record " + folder.path + "/samples.jsonl";
  Command command(processes(size_t(ranks), folder, trainer(folder, options)), {"RONDO_HEARTBEAT=1"});
  wait_for_lines(folder, 5);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; rank++) pids.push_back(pid_of(folder, rank));
  REQUIRE(std::ranges::count(pids, 0) == 0);
  for (const int rank : sleepers) {
    ::kill(pids[size_t(rank)], SIGSTOP);
    REQUIRE(wait_for_state(pids[size_t(rank)], 'T'));
  }
  for (int rank = 0; rank < ranks; rank++)
    if (!sleepers.count(rank)) REQUIRE(wait_for_state(pids[size_t(rank)], '\0'));
  const auto before = results(folder);
  const size_t worked = lines_of(folder.path + "/samples.jsonl").size();
  for (const int rank : sleepers) ::kill(pids[size_t(rank)], SIGCONT);
  const auto ended = command.wait(60);
  INFO(ended.out << ended.err);
  CHECK(ended.code == 1);
  for (const int rank : sleepers) {
    const std::string name = std::to_string(rank);
    CHECK(ended.err.find("[" + name + "] trainer: the training went on without this rank up to step " +
                         std::to_string(steps) + " (") != std::string::npos);
    CHECK(ended.err.find("rank " + name + " failed: exit 1") != std::string::npos);
  }
  CHECK(results(folder) == before);
  // The step in which they were stopped is the last that they begin.
  const auto samples = lines_of(folder.path + "/samples.jsonl");
  for (size_t i = worked; i < samples.size(); i++) CHECK(samples[i]["ranks"] == ranks);
  check_log(folder, size_t(ranks), size_t(ranks) - sleepers.size(), false);
}

}  // namespace

TEST_CASE("trainer --elastic: ranks killed at a random moment are not missed") {
  const char* given = ::getenv("TEST_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : rondo::random_number();
  INFO("TEST_SEED=" << seed);
  SUBCASE("one") { lose({int(1 + seed % 3)}, seed, ""); }
  SUBCASE("rank 0, in buckets, over tcp") {
    lose({0}, seed, "--buckets 4 --micro-batches 2 --transport tcp");
  }
  SUBCASE("two, one after the other") { lose({0, 2}, seed, ""); }
  SUBCASE("all but one") { lose({1, 0, 3}, seed, ""); }
}

TEST_CASE("trainer --elastic: a newcomer is given what the others have learned, and works with them") {
  const Folder folder;
  SUBCASE("while nobody is lost") {
    Command command(training_with_newcomer(folder, 3, "step", ""));
    check_good_end(command);
    check_log(folder, 3, 4, true);
    check_newcomer_worked(folder);
  }
  SUBCASE("in place of rank 0, over tcp, in buckets") {
    Command command(training_with_newcomer(folder, 4, "shrunk", "--buckets 4 --transport tcp"));
    wait_for_lines(folder, 3);
    kill_rank(folder, 0);
    check_good_end(command);
    check_log(folder, 4, 4, true);
  }
  SUBCASE("and when all others are lost it has the whole log") {
    Command command(training_with_newcomer(folder, 3, "step", ""));
    wait_for_growth(folder);
    for (const int victim : {1, 0, 2}) {
      wait_for_lines(folder, lines_of(folder.path + "/log.jsonl").size() + 2);
      kill_rank(folder, victim);
    }
    check_good_end(command);
    check_log(folder, 3, 1, true);
    check_newcomer_worked(folder);
  }
  check_samples(folder);
}

TEST_CASE("trainer --elastic: a newcomer with another command line is told so, and the others go on") {
  const Folder folder;
  Command command(training_with_newcomer(folder, 3, "step", "", "--seed 2"));
  const auto ended = command.wait(60);
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.err.find("[3] trainer: rank 3 has another command line than rank 0") != std::string::npos);
  CHECK(ended.err.find("rank 3 failed: exit 1; the others go on") != std::string::npos);
  check_log(folder, 3, 3, true);
  check_samples(folder);
}

TEST_CASE(
    "trainer --elastic: a rank that wakes when the others have ended leaves their results as they are") {
  SUBCASE("the last") { wake_late(4, {3}); }
  SUBCASE("rank 0, which wrote the log") { wake_late(4, {0}); }
  SUBCASE("half of the ranks, which form a group as large as that of the others") { wake_late(4, {2, 3}); }
  SUBCASE("rank 0 and another") { wake_late(5, {0, 1}); }
}

TEST_CASE("trainer --elastic: a new training replaces the results of an older one") {
  const Folder folder;
  for (int time = 0; time < 2; time++) {
    Command command(training(folder, time == 0 ? "--elastic --seed 2" : "--elastic"));
    if (time == 1) REQUIRE(command.wait_for_output("step  1 ", 30));
    if (time == 1) kill_rank(folder, 0);
    check_good_end(command);
  }
  check_log(folder, 4, 3, false);
}

TEST_CASE("trainer --elastic: a wish for newcomers that is no number is refused with a warning, once") {
  for (const std::string wish : {"-1", "abc"}) {
    const Folder folder;
    std::ofstream(folder.path + "/newcomers") << wish << '\n';
    const auto ended = run(processes(2, folder, trainer(folder, "--elastic")), {}, 60);
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    const std::string warning =
        "WARNING: " + folder.path + "/newcomers says '" + wish + "', which is no number of newcomers";
    CHECK(ended.err.find(warning) != std::string::npos);
    CHECK(ended.err.find(warning) == ended.err.rfind(warning));
    CHECK_FALSE(std::filesystem::exists(folder.path + "/newcomers"));
  }
}

TEST_CASE("trainer --elastic: the same bits as without, when no rank is lost") {
  const Folder folder;
  REQUIRE(run(training(folder, "--elastic --optimizer adamw"), {}, 60).code == 0);
  CHECK(losses(lines_of(folder.path + "/log.jsonl")) == undisturbed());
}

TEST_CASE("trainer: without --elastic a rank that is killed ends the training") {
  const Folder folder;
  Command command(training(folder, ""));
  REQUIRE(command.wait_for_output("step  1", 30));
  ::kill(pid_of(folder, 1), SIGKILL);
  const auto ended = command.wait(30);
  CHECK(ended.code == 1);
  CHECK(ended.err.find("no rank is left") != std::string::npos);
}
