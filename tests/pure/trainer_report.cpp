#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../folder.hpp"
#include "agree.hpp"
#include "options.hpp"
#include "plot.hpp"
#include "report.hpp"

using namespace trainer;
using rondo::test::Folder;

namespace {

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) found++;
  return found;
}

}  // namespace

TEST_CASE("log: the lines that others read") {
  const Folder folder;
  const std::string path = folder.path + "/log.jsonl";
  auto log = JsonLines::create(path);
  REQUIRE(log.ok());
  REQUIRE(log->write(json_of(StepLine{1, 5.5, 90000, 0.25})).ok());
  CHECK(content(path) == "{\"step\":1,\"loss\":5.5,\"tokens_per_s\":90000.0,\"communication_share\":0.25}\n");
  REQUIRE(log->write(json_of(FinalLine{1.75, 900, 4, 141056, 40.5, "ab", "shm"})).ok());
  CHECK(content(path).ends_with(
      "{\"final\":true,\"held_out_loss\":1.75,\"steps\":900,\"ranks\":4,\"parameters\":141056,"
      "\"seconds\":40.5,\"data_sha256\":\"ab\",\"transport\":\"shm\"}\n"));
}

TEST_CASE("log and report: what cannot be written is an error with the path and the reason") {
  CHECK(JsonLines::create("/nonexistent/log.jsonl").error().message ==
        "cannot write /nonexistent/log.jsonl: No such file or directory");
  CHECK(Report::create("/dev/null/out", 1).error().message.find("/dev/null/out") != std::string::npos);
  auto full = JsonLines::create("/dev/full");
  REQUIRE(full.ok());
  CHECK(full->write(json_of(StepLine{1, 5.5, 1, 0})).error().message ==
        "cannot write /dev/full: No space left on device");
}

TEST_CASE("grouped: thousands") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(4298239) == "4,298,239");
}

TEST_CASE("plot: axes end at round numbers, curves lie where their values are") {
  const plot::Plot picture{"a < b", {"x"}, {"y"}, {{"line", "red", {{0, 1}, {10, 3}}}}};
  const std::string svg = plot::to_svg(picture);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "a &lt; b") == 1);
  CHECK(count(svg, "d=\"M72.0 420.0L776.0 48.0\"") == 1);  // corner to corner of the frame
  CHECK(count(svg, ">10</text>") == 1);
  CHECK(count(svg, ">line</text>") == 1);
}

TEST_CASE("plot: logarithmic axes have even decades, binary labels, and leave out what they cannot show") {
  const plot::Plot picture{"",
                           {"bytes", plot::Scale::log2},
                           {"us", plot::Scale::log10},
                           {{"", "red", {{0, 1}, {1024, 1}, {32768, 10}, {1048576, 100}}}}};
  const std::string svg = plot::to_svg(picture);
  CHECK(count(svg, ">1K</text>") == 1);
  CHECK(count(svg, ">1M</text>") == 1);
  CHECK(count(svg, ">100</text>") == 1);
  CHECK(count(svg, "d=\"M72.0 420.0L424.0 234.0L776.0 48.0\"") == 1);
}

TEST_CASE("plot: nothing, one point, and not-a-number are drawn without harm") {
  CHECK(plot::to_svg({"", {}, {}, {}}).find("nan") == std::string::npos);
  CHECK(plot::to_svg({"", {}, {}, {{"", "red", {{1, 2}}}}}).find("nan") == std::string::npos);
  CHECK(plot::to_svg({"", {}, {}, {{"", "red", {{1, std::nan("")}, {2, 3}}}}}).find("nan") ==
        std::string::npos);
}

TEST_CASE("report: leaves log, plot and sample") {
  const Folder folder;
  auto report = Report::create(folder.path + "/deep/er", 2);
  REQUIRE(report.ok());
  REQUIRE(report->step({1, 5.5, 1000, 0.5}).ok());
  REQUIRE(report->step({2, 5.25, 1000, 0.5}).ok());
  REQUIRE(report->final({5.0, 2, 1, 10, 0.1, "ab", "local"}, "In the beginning").ok());
  CHECK(count(content(folder.path + "/deep/er/log.jsonl"), "\n") == 3);
  CHECK(content(folder.path + "/deep/er/sample.txt") == "In the beginning");
  CHECK(content(folder.path + "/deep/er/loss.svg").find("held out") != std::string::npos);
}

TEST_CASE("agree: ranks that could not start, and ranks with other facts, are named") {
  const std::array<std::string, 2> names{"command line", "text"};
  const auto verdict = [&](const std::vector<int64_t>& gathered) {
    const auto result = compare(gathered, names);
    return result ? std::string("same") : result.error().message;
  };
  CHECK(verdict({1, 5, 6, 1, 5, 6, 1, 5, 6}) == "same");
  CHECK(verdict({1, 5, 6, 0, 5, 0, 0, 5, 6}) == "rank 1, 2 could not start; its own message says why");
  CHECK(verdict({1, 5, 6, 1, 5, 7, 1, 5, 6}).starts_with("rank 1 has another text than rank 0"));
  CHECK(verdict({1, 5, 6, 1, 4, 7, 1, 4, 6}).starts_with("rank 1, 2 has another command line than rank 0"));
}

TEST_CASE("options: defaults, values, and what is refused") {
  const auto parsed = [](std::vector<const char*> words) {
    words.insert(words.begin(), "trainer");
    return parse(int(words.size()), words.data());
  };
  const auto main_job = std::get<TrainOptions>(parsed({}));
  CHECK(main_job.steps == 900);
  CHECK(main_job.sequences * uint64_t(main_job.shape.context) == 4096);
  const auto other = std::get<TrainOptions>(parsed({"--steps", "60", "--channels=32", "--data", "x.txt"}));
  CHECK(other.steps == 60);
  CHECK(other.shape.channels == 32);
  CHECK(other.data == "x.txt");
  CHECK(other.agreed() != main_job.agreed());
  for (const std::vector<const char*>& wrong : {std::vector<const char*>{"--steps", "0"},
                                                {"--steps", "-1"},
                                                {"--steps", "x"},
                                                {"--heads", "3"},
                                                {"--lr", "nan"},
                                                {"--optimizer", "adam"},
                                                {"--nothing"},
                                                {"--batch", "65536", "--context", "4096"}})
    CHECK(std::get<int>(parsed(wrong)) == 2);
}
