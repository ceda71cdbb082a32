// Ranks that a failure has left one step apart, as threads.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "elastic.hpp"
#include "ranks.hpp"

using namespace trainer;
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
  state.last = {steps, 1.0 / 3 + double(steps), 1e6 / 7, 0.1};
  return state;
}

size_t lines_in(const std::string& path) {
  std::ifstream file(path);
  return size_t(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

}  // namespace

TEST_CASE("elastic: those a step behind take over the state of one ahead, to the bit, and note the step") {
  std::string folder = std::filesystem::temp_directory_path() / "trainer-test-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()));
  const std::string expected = state_after(8).digest(), after_one_more = state_after(9).digest();
  CHECK(state_after(7).digest() != expected);
  for (const uint32_t ahead : {0b0001u, 0b0110u, 0b1000u, 0b0000u, 0b1111u}) {
    on_ranks(4, [&](rondo::Communicator& comm) {
      const bool leads = (ahead >> comm.rank() & 1) != 0, nobody = ahead == 0;
      State state = state_after(leads || nobody ? 8 : 7);
      const std::string own = folder + "/" + std::to_string(comm.rank());
      Report report(own, 10);
      const auto done = catch_up(comm, state, report);
      CHECK(done.ok());
      CHECK(state.digest() == expected);
      CHECK(state.steps == 8);
      CHECK(state.last.loss == 1.0 / 3 + 8);
      // The number of steps is part of what the optimizer remembers.
      std::vector<float> gradient(map.size());
      std::iota(gradient.begin(), gradient.end(), 8.5f);
      state.adamw.step(0.01, gradient, state.parameters.span());
      CHECK(state.digest() == after_one_more);
      CHECK(report.take_over().ok());
      CHECK(lines_in(own + "/log.jsonl") == (leads || nobody ? 0 : 1));
    });
  }
  std::filesystem::remove_all(folder);
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
  std::string folder = std::filesystem::temp_directory_path() / "trainer-test-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()));
  auto first = Report::create(folder, 9);
  REQUIRE(first.ok());
  Report second(folder, 9);
  for (Report* report : {&*first, &second}) REQUIRE(report->step({1, 5.5, 1, 0}).ok());
  REQUIRE(first->step({2, 5.25, 1, 0}).ok());  // the other rank has not done it
  REQUIRE(second.take_over().ok());
  REQUIRE(second.shrunk({2, 3}).ok());
  REQUIRE(second.step({2, 5.0, 1, 0}).ok());
  REQUIRE(first->step({3, 4.75, 1, 0}).ok());
  std::ifstream file(folder + "/log.jsonl");
  std::string line;
  std::getline(file, line);
  CHECK(line.starts_with("{\"step\":1,\"loss\":5.5,"));
  std::getline(file, line);
  CHECK(line == "{\"shrunk\":true,\"step\":2,\"ranks\":3}");
  std::getline(file, line);
  CHECK(line.starts_with("{\"step\":2,\"loss\":5.0,"));
  CHECK_FALSE(std::getline(file, line));
  std::filesystem::remove_all(folder);
}
