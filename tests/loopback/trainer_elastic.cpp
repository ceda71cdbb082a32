// Ranks that a failure has left one step apart, as threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "../folder.hpp"
#include "elastic.hpp"
#include "ranks.hpp"

using namespace trainer;
using rondo::test::Folder;
using rondo::test::on_ranks;

namespace {

const ParameterMap map(ModelShape{1, 8, 2, 16});

// What a rank holds after `steps` steps: depends on nothing else.
State state_after(uint64_t steps) {
  State state(map, {});
  std::iota(state.parameters.span().begin(), state.parameters.span().end(), 0.f);
  std::vector<float> gradient(map.size());
  for (; state.steps < steps; state.steps++) {
    std::iota(gradient.begin(), gradient.end(), float(state.steps) + 0.5f);
    state.adamw.step(0.01, gradient, state.parameters.span());
  }
  state.begun = true;
  return state;
}

// What its report has then noted.
Report report_after(uint64_t steps, const std::string& folder) {
  Report report(folder, 10);
  for (uint64_t step = 1; step <= steps; step++) CHECK(report.step({step, 1.0 / double(step), 1, 0}).ok());
  return report;
}

size_t lines_in(const std::string& path) {
  std::ifstream file(path);
  return size_t(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

}  // namespace

TEST_CASE("elastic: those a step behind take over the state of one ahead, to the bit, and note the step") {
  const Folder folder;
  const std::string expected = state_after(8).digest(), after_one_more = state_after(9).digest();
  CHECK(state_after(7).digest() != expected);
  for (const uint32_t ahead : {0b0001u, 0b0110u, 0b1000u, 0b0000u, 0b1111u}) {
    on_ranks(4, [&](rondo::Communicator& comm) {
      const bool leads = (ahead >> comm.rank() & 1) != 0, nobody = ahead == 0;
      const uint64_t steps = leads || nobody ? 8 : 7;
      State state = state_after(steps);
      const std::string own = folder.path + "/" + std::to_string(comm.rank());
      Report report = report_after(steps, own);
      const auto done = catch_up(comm, state, report);
      CHECK(done.ok());
      CHECK(state.digest() == expected);
      CHECK(state.steps == 8);
      // The number of steps is part of what the optimizer remembers.
      std::vector<float> gradient(map.size());
      std::iota(gradient.begin(), gradient.end(), 8.5f);
      state.adamw.step(0.01, gradient, state.parameters.span());
      CHECK(state.digest() == after_one_more);
      CHECK(report.take_over().ok());
      CHECK(lines_in(own + "/log.jsonl") == 8);
    });
  }
}

TEST_CASE(
    "elastic: newcomers are given the state and the notes of those that have begun, whoever is ahead of "
    "them") {
  const Folder folder;
  const std::string expected = state_after(8).digest();
  on_ranks(4, [&](rondo::Communicator& comm) {
    // Rank 1 is new, and so is rank 3, which believes to be further than all.
    const bool is_new = comm.rank() % 2 == 1;
    State state = state_after(comm.rank() == 3 ? 9 : is_new ? 0 : 8);
    state.begun = !is_new;
    const std::string own = folder.path + "/" + std::to_string(comm.rank());
    Report report = report_after(is_new ? 0 : 8, own);
    CHECK(catch_up(comm, state, report).ok());
    CHECK(state.digest() == expected);
    CHECK(state.steps == 8);
    CHECK(report.take_over().ok());
    CHECK(lines_in(own + "/log.jsonl") == 8);
  });
}

TEST_CASE("elastic: the wish for newcomers reaches all ranks, once; one that is being written stays") {
  const Folder folder;
  const std::string path = folder.path + "/newcomers";
  for (const std::string content : {"", "2\n"}) {
    std::ofstream(path) << content;
    const uint32_t expected = content.empty() ? 0 : 2;
    on_ranks(3, [&](rondo::Communicator& comm) {
      const auto first = wanted_newcomers(comm, path), second = wanted_newcomers(comm, path);
      CHECK(first.ok());
      CHECK(*first == expected);
      CHECK(*second == 0);
    });
    CHECK(std::filesystem::exists(path) == content.empty());
  }
}

TEST_CASE("elastic: a wish for newcomers that is no number is removed") {
  const Folder folder;
  const std::string path = folder.path + "/newcomers";
  for (const std::string wish : {"-1\n", "abc\n", "4294967296", "1 2\n", "\n 2x \n", "\x01\n"}) {
    CAPTURE(wish);
    std::ofstream(path) << wish;
    on_ranks(2, [&](rondo::Communicator& comm) {
      const auto wanted = wanted_newcomers(comm, path);
      CHECK(wanted.ok());
      CHECK(*wanted == 0);
    });
    CHECK_FALSE(std::filesystem::exists(path));
  }
}

TEST_CASE(
    "elastic: a log that has gone on without this rank, or is another training's, is not gone on with") {
  const std::vector<Note> notes{StepLine{1, 5.5, 1, 0}, ChangeLine{Change::shrunk, 2, 5},
                                StepLine{2, 5.25, 1, 0}};
  const std::vector<uint32_t> worlds{4};
  const auto look = [&](const Logged& log) { return finished_with_us(log, "LOG", 2, 3, notes, worlds); };
  const Logged mine{{{1, 5.5}, {2, 5.25}}, {5}, false};
  for (const auto& log : {Logged{}, mine, Logged{{{1, 5.5}}, {}, false},
                          // Done by the former rank 0 alone; a shrink that failed here.
                          Logged{{{1, 5.5}, {2, 5.25}, {3, 5.0}}, {5, 4}, false}}) {
    const auto looked = look(log);
    REQUIRE(looked.ok());
    CHECK_FALSE(*looked);
  }
  for (const auto& log :
       {Logged{{{4, 5.0}}, {5}, false}, Logged{{{2, 5.25}}, {5, 3}, false}, Logged{{{3, 5.0}}, {5}, true}}) {
    const auto looked = look(log);
    REQUIRE_FALSE(looked.ok());
    CHECK(looked.error().message.starts_with("the training went on without this rank up to step " +
                                             std::to_string(log.steps()) + " (LOG)"));
    CHECK_FALSE(survivable(looked.error()));
  }
  // The last step was whole here, and has been redone by those that had not got so far.
  const auto redone = look({{{1, 5.5}, {2, 5.0}}, {5, 3}, false});
  REQUIRE_FALSE(redone.ok());
  CHECK(redone.error().message.starts_with("the training went on without this rank up to step 2 (LOG)"));
  const auto other = look({{{1, 5.0}, {2, 5.25}}, {5}, false});
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message.starts_with(
      "another training, or this one without this rank, went on up to step 2 (LOG)"));
  const auto finished = finished_with_us({{{3, 5.0}}, {5}, true}, "LOG", 3, 3, notes, worlds);
  REQUIRE(finished.ok());
  CHECK(*finished);
}

TEST_CASE("elastic: a log is read back to the bit, and not if it is older") {
  const Folder folder;
  const auto now = std::filesystem::file_time_type::clock::now();
  auto report = Report::create(folder.path, 9);
  REQUIRE(report.ok());
  REQUIRE(report->step({1, 1.0 / 3, 1, 0}).ok());
  REQUIRE(report->changed({Change::shrunk, 2, 3}).ok());
  REQUIRE(report->changed({Change::grown, 2, 4}).ok());
  const std::string path = report->log_path();
  std::ofstream(path, std::ios::app) << "{\"step\":2,\"lo";  // a writer that died
  std::filesystem::last_write_time(path, now);
  const auto log = read_log(path, now);
  CHECK(log.losses == std::map<uint64_t, double>{{1, 1.0 / 3}});
  CHECK(log.shrunk_to == std::vector<uint32_t>{3});
  CHECK_FALSE(log.finished);
  CHECK(read_log(path, now + std::chrono::seconds(1)).steps() == 0);
  CHECK(read_log(path + ".none", now).steps() == 0);
  REQUIRE(report->final({2.5, 9, 3, 1, 1, "", ""}, "text").ok());
  CHECK(read_log(path, now).finished);
}

TEST_CASE("elastic: ranks further apart are an error on all of them") {
  on_ranks(3, [](rondo::Communicator& comm) {
    State state = state_after(comm.rank() == 1 ? 5 : 3);
    Report report("", 10);
    const auto done = catch_up(comm, state, report);
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().message == "some ranks have done 3 steps, others 5");
    CHECK_FALSE(survivable(done.error()));
  });
}

TEST_CASE("elastic: whoever takes over writes the log anew, and the former writer can no longer disturb it") {
  const Folder folder;
  auto first = Report::create(folder.path, 9);
  REQUIRE(first.ok());
  Report second(folder.path, 9);
  for (Report* report : {&*first, &second}) REQUIRE(report->step({1, 5.5, 1, 0}).ok());
  REQUIRE(first->step({2, 5.25, 1, 0}).ok());  // the other rank has not done it
  REQUIRE(second.take_over().ok());
  REQUIRE(second.changed({Change::shrunk, 2, 3}).ok());
  REQUIRE(second.step({2, 5.0, 1, 0}).ok());
  REQUIRE(first->step({3, 4.75, 1, 0}).ok());
  std::ifstream file(folder.path + "/log.jsonl");
  std::string line;
  std::getline(file, line);
  CHECK(line.starts_with("{\"step\":1,\"loss\":5.5,"));
  std::getline(file, line);
  CHECK(line == "{\"shrunk\":true,\"step\":2,\"ranks\":3}");
  std::getline(file, line);
  CHECK(line.starts_with("{\"step\":2,\"loss\":5.0,"));
  CHECK_FALSE(std::getline(file, line));
}
