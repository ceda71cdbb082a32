// The perceptron as its users start it: several processes under `rondo run`.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../folder.hpp"
#include "../skip.hpp"
#include "command.hpp"

using namespace rondo::test;

namespace {

const std::string fashion_mnist = "/usr/share/datasets/fashion-mnist";

std::vector<std::string> training(const std::string& ranks, const std::string& data, const std::string& out) {
  return {RONDO_EXE, "run", "-n", ranks, "--", MLP_EXE, "--data", data, "--out", out};
}

std::vector<nlohmann::json> log_of(const std::string& folder) {
  std::vector<nlohmann::json> entries;
  std::ifstream file(folder + "/mlp.jsonl");
  for (std::string line; std::getline(file, line);) entries.push_back(nlohmann::json::parse(line));
  return entries;
}

}  // namespace

TEST_CASE("mlp: four ranks tell clothes apart, 85 % of them after three epochs") {
  if (!std::filesystem::exists(fashion_mnist))
    SKIP_TEST("no images: the package dataset-fashion-mnist is not installed");
  const Folder folder;
  const auto ended = run(training("4", fashion_mnist, folder.path), {}, 120);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const auto log = log_of(folder.path);
  REQUIRE(log.size() == 4);
  CHECK(log[2]["test_accuracy"] >= 0.85);
  CHECK(log[3]["test_accuracy"] == log[2]["test_accuracy"]);
  CHECK(log[3]["ranks"] == 4);
}

TEST_CASE("mlp: three ranks learn generated digits, and leave a log") {
  const Folder folder;
  const auto ended = run(training("3", "generated", folder.path), {}, 60);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const auto log = log_of(folder.path);
  REQUIRE(log.size() == 4);
  for (size_t i = 0; i < 3; i++) {
    CHECK(log[i]["epoch"] == i + 1);
    CHECK(log[i]["seconds"] > 0);
    CHECK(log[i]["communication_share"] > 0);
    CHECK(log[i]["communication_share"] < 1);
  }
  CHECK(log[2]["loss"] < log[0]["loss"]);
  CHECK(log[2]["test_accuracy"] > 0.95);
  CHECK(log[3]["final"] == true);
  CHECK(log[3]["epochs"] == 3);
  CHECK(log[3]["ranks"] == 3);
  CHECK(log[3]["parameters"] == 101770);
  CHECK(log[3]["data_sha256"].get<std::string>().size() == 64);
}

TEST_CASE("mlp: without images it says what to install, and no rank waits for the others") {
  const Folder folder;
  const auto ended = run(training("2", folder.path, folder.path), {}, 30);
  CHECK(ended.code == 1);
  CHECK(ended.err.find("install the package dataset-fashion-mnist") != std::string::npos);
}

TEST_CASE("mlp: ranks with different options refuse to train together") {
  const Folder folder;
  const auto ended =
      run({RONDO_EXE, "run", "-n", "2", "--", "/bin/sh", "-c",
           std::string("exec ") + MLP_EXE + " --data generated --out " + folder.path + " --batch 6$RANK"},
          {}, 30);
  CHECK(ended.code == 1);
  CHECK(ended.err.find("rank 1 has another command line than rank 0") != std::string::npos);
}

TEST_CASE("mlp: a wrong option is refused before anything starts, exit code 2") {
  CHECK(run({MLP_EXE, "--epochs", "0"}).code == 2);
  CHECK(run({MLP_EXE, "--transport", "pigeon"}).code == 2);
  CHECK(run({MLP_EXE, "--help"}).code == 0);
}
