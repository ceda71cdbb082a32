// The trainer as its users start it: several processes under `rondo run`. On the generated text, so that
// nothing has to be installed.
#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../folder.hpp"
#include "command.hpp"

using namespace rondo::test;

namespace {

// A model that takes a second or two for all of its steps.
std::vector<std::string> training(const std::string& ranks, const std::string& out,
                                  std::vector<std::string> more = {}) {
  std::vector<std::string> words{RONDO_EXE,   "run", "-n",     ranks,       "--",         TRAINER_EXE,
                                 "--out",     out,   "--data", "generated", "--channels", "32",
                                 "--context", "64",  "--lr",   "0.01"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<nlohmann::json> log_of(const std::string& folder) {
  std::vector<nlohmann::json> entries;
  std::ifstream file(folder + "/log.jsonl");
  for (std::string line; std::getline(file, line);) entries.push_back(nlohmann::json::parse(line));
  return entries;
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("trainer: three ranks learn, and leave log, plot and sample") {
  const Folder folder;
  const auto ended = run(training("3", folder.path, {"--steps", "60", "--micro-batches", "2"}), {}, 60);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const auto log = log_of(folder.path);
  REQUIRE(log.size() == 61);
  for (size_t i = 0; i < 60; i++) {
    CHECK(log[i]["step"] == i + 1);
    CHECK(log[i]["tokens_per_s"] > 0);
    CHECK(log[i]["communication_share"] > 0);
    CHECK(log[i]["communication_share"] < 1);
  }
  CHECK(log[0]["loss"] > 5.4);
  CHECK(log[59]["loss"] < 2.9);
  CHECK(log[60]["final"] == true);
  CHECK(log[60]["held_out_loss"] < 2.9);
  CHECK(log[60]["steps"] == 60);
  CHECK(log[60]["ranks"] == 3);
  CHECK(log[60]["parameters"] > 10000);
  CHECK(log[60]["data_sha256"].get<std::string>().size() == 64);
  CHECK(content(folder.path + "/sample.txt").size() > 500);
  CHECK(content(folder.path + "/loss.svg").starts_with("<svg"));
}

TEST_CASE("trainer: the loss does not depend on the number of ranks") {
  const Folder one, four;
  REQUIRE(run(training("1", one.path, {"--steps", "5"}), {}, 60).code == 0);
  REQUIRE(run(training("4", four.path, {"--steps", "5"}), {}, 60).code == 0);
  const auto a = log_of(one.path), b = log_of(four.path);
  REQUIRE(a.size() == 6);
  REQUIRE(b.size() == 6);
  for (size_t i = 0; i < 5; i++)
    CHECK(a[i]["loss"].get<double>() == doctest::Approx(b[i]["loss"].get<double>()).epsilon(1e-4));
}

TEST_CASE("trainer: a folder that cannot be made ends all ranks at once, with the reason") {
  const auto ended = run(training("2", "/dev/null/out"), {}, 30);
  CHECK(ended.code == 1);
  CHECK(ended.err.find("cannot make the folder /dev/null/out") != std::string::npos);
  CHECK(ended.err.find("rank 0 could not start") != std::string::npos);
}

TEST_CASE("trainer: ranks with different options refuse to train together") {
  const Folder folder;
  const std::string trainer =
      std::string(TRAINER_EXE) + " --data generated --out " + folder.path + " --seed $RANK";
  const auto ended = run({RONDO_EXE, "run", "-n", "2", "--", "/bin/sh", "-c", "exec " + trainer}, {}, 30);
  CHECK(ended.code == 1);
  CHECK(ended.err.find("rank 1 has another command line than rank 0") != std::string::npos);
}

TEST_CASE("trainer: a wrong option is refused before anything starts, exit code 2") {
  const auto ended = run({TRAINER_EXE, "--steps", "many"});
  CHECK(ended.code == 2);
  CHECK(ended.err.find("'many' is not a whole number") != std::string::npos);
  CHECK(run({TRAINER_EXE, "--help"}).code == 0);
}

TEST_CASE("trainer: when the Bible is not there, it says loudly what it learns from instead") {
  const Folder folder;
  const auto ended =
      run({RONDO_EXE, "run", "-n", "1", "--", TRAINER_EXE, "--steps", "1", "--out", folder.path},
          {"PATH=/nonexistent"}, 60);
  CHECK(ended.code == 0);
  CHECK(ended.err.find("WARNING: learning from GENERATED SENTENCES") != std::string::npos);
}

TEST_CASE("trainer: Ctrl-C stops all ranks after a step and keeps log and plot") {
  const Folder folder;
  Command command(training("2", folder.path, {"--steps", "1000000"}));
  REQUIRE(command.wait_for_output("step", 30));
  ::kill(command.pid(), SIGINT);
  const auto ended = command.wait(10);
  CHECK_FALSE(ended.too_late);
  CHECK(ended.code == 128 + SIGINT);
  CHECK(ended.out.find("interrupted after step") != std::string::npos);
  CHECK(!log_of(folder.path).empty());
  CHECK(content(folder.path + "/loss.svg").ends_with("</svg>\n"));
  CHECK(command.alive().empty());
}
