#include "schedule/print.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/explain.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/program.hpp"

using namespace rondo;
using namespace rondo::schedule;

namespace {

std::string text_of(const Schedule& schedule, const Shape& shape, std::optional<Rank> rank = {}) {
  std::string text;
  print_text(schedule, shape, rank, [&](std::string_view piece) { text += piece; });
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What `rondo explain` makes of a command line: the complaint, or nothing.
std::string complaint(const std::string& arguments) {
  CLI::App app{"", "rondo"};
  std::function<int()> action;
  cli::add_explain(app, action);
  try {
    app.parse("explain " + arguments, false);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  REQUIRE(action);
  return {};
}

// Its exit code and what it prints.
std::pair<int, std::string> printed(const std::string& arguments) {
  const std::string command = std::string(RONDO_EXECUTABLE) + " explain " + arguments;
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> piece{};
  while (const size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) text.append(piece.data(), n);
  return {WEXITSTATUS(pclose(pipe)), text};
}

int exit_code(const std::string& arguments) {
  const std::string command = std::string(RONDO_EXECUTABLE) + " " + arguments + " >/dev/null 2>&1";
  return WEXITSTATUS(std::system(command.c_str()));
}

}  // namespace

TEST_CASE("print: a line per step, the rest are comments") {
  for (const Schedule& schedule : catalogue()) {
    for (uint32_t world : {1u, 2u, 5u, 70u}) {
      size_t steps = 0, lines = 0;
      for (Rank rank = 0; rank < world; rank++)
        schedule.steps(rank, shape_of(schedule.operation, {.world = world}, rank),
                       [&](const Step&) { steps++; });
      std::istringstream text(text_of(schedule, {.world = world}));
      for (std::string line; std::getline(text, line);) {
        if (line[0] == '#') continue;
        std::istringstream words(line);
        uint32_t rank, round, chunk;
        std::string kind, peer, more;
        REQUIRE((words >> rank >> round >> kind >> peer >> chunk));
        REQUIRE_FALSE((words >> more));
        REQUIRE(rank < world);
        REQUIRE(chunk < schedule.chunks({.world = world}));
        lines++;
      }
      REQUIRE(lines == steps);
    }
  }
}

TEST_CASE("print: rank 1 of a ring all-reduce on 3 ranks") {
  CHECK(text_of(*find(Operation::all_reduce, Algorithm::ring), {.world = 3}, 1) ==
        "# ring all_reduce, world 3, 3 chunks\n"
        "# rank round kind peer chunk\n"
        "1 0 send 2 0\n"
        "1 0 recv_reduce 0 2\n"
        "1 1 send 2 2\n"
        "1 1 recv_reduce 0 1\n"
        "1 2 send 2 1\n"
        "1 2 recv 0 0\n"
        "1 3 send 2 0\n"
        "1 3 recv 0 2\n"
        "# kinds: send to peer; recv from peer; recv_reduce = (from peer) op (own); copy and reduce stay on "
        "the rank\n"
        "# steps: 8 on rank 1\n"
        "# payload sent by rank 1: 4/3 m, of a vector of m\n"
        "# latency: 4 alpha\n"
        "# chunk 0 is summed as: 0+(1+2)\n");
}

TEST_CASE("print: halving and doubling, a double tree, and where the ranks are") {
  const std::string halving =
      text_of(*find(Operation::all_reduce, Algorithm::halving_doubling), {.world = 7});
  CHECK(contains(halving, "# chunk 0 is summed as: ((0+1)+(2+3))+((4+5)+6)\n"));
  CHECK(contains(halving, "\n0 0 send 1 1\n0 0 recv_reduce 1 0\n"));
  const std::string trees =
      text_of(*find(Operation::reduce, Algorithm::double_tree), {.world = 4, .root = 1});
  CHECK(contains(trees, "# double_tree reduce, world 4, root 1, 2 chunks\n"));
  CHECK(contains(trees, "\n1 1 recv_reduce 3 0\n1 1 recv_reduce 0 1\n"));
  const std::vector<uint32_t> nodes{0, 0, 1};
  const std::string grouped =
      text_of(*find(Operation::all_reduce, Algorithm::hierarchical), {.world = 3, .nodes = nodes});
  CHECK(contains(grouped, "# hierarchical all_reduce, world 3, ranks on nodes 0 0 1, 2 chunks\n"));
  CHECK(contains(grouped, "# chunk 0 is summed as: (0+1)+2\n"));
}

TEST_CASE("print: the summary fits the operation") {
  CHECK(contains(text_of(*find(Operation::broadcast, Algorithm::ring), {.world = 4, .root = 2}),
                 "# payload sent per rank: 0 to m, of a vector of m\n# latency: 3 alpha\n# chunk 0 comes "
                 "from rank: 2\n"));
  const std::string barrier = text_of(*find(Operation::barrier, Algorithm::dissemination), {.world = 5});
  CHECK(contains(barrier, "# latency: 3 alpha\n"));
  CHECK(contains(barrier, "tokens have no elements"));
  CHECK(contains(barrier, "\n0 0 copy - 0\n"));
}

TEST_CASE("print: JSON holds the same steps") {
  for (const Schedule& schedule : catalogue()) {
    std::string text;
    print_json(schedule, {.world = 3}, {}, [&](std::string_view piece) { text += piece; });
    const auto json = nlohmann::json::parse(text);
    CHECK(json["operation"] == name_of(schedule.operation));
    CHECK(json["world"] == 3);
    CHECK(json["steps"].size() == json["step_count"]);
    size_t i = 0;
    for (Rank rank = 0; rank < 3; rank++) {
      uint32_t index = 0;
      schedule.steps(rank, {.world = 3}, [&](const Step& step) {
        const auto& line = json["steps"][i++];
        CHECK(line["rank"] == rank);
        CHECK(line["step"] == index++);
        CHECK(line["kind"] == name_of(step.kind));
        CHECK(line["chunk"] == step.chunk);
        CHECK(line["finish"] == bool(step.flags & flag::finish));
        CHECK(line["fan"] == bool(step.flags & flag::fan));
        CHECK(line["published"] == bool(step.flags & flag::published));
      });
    }
  }
}

TEST_CASE("explain: a wrong command line is told what would be right") {
  CHECK(complaint("--algorithm ring --world 4") == "");
  CHECK(complaint("--algorithm ring --world 4 --operation broadcast --root 3 --rank 1 --json") == "");
  CHECK(contains(complaint("--algorithm rings --world 4"),
                 "--algorithm: rings is not one of: ring, dissemination"));
  CHECK(contains(complaint("--algorithm ring --world 4 --operation reduction"),
                 "all_reduce, reduce_scatter, all_gather"));
  CHECK(contains(complaint("--algorithm dissemination --world 4"),
                 "all_reduce has no dissemination, it has: ring"));
  CHECK(contains(complaint("--algorithm ring --world 0"), "1 to 16384"));
  CHECK(contains(complaint("--algorithm ring --world 4 --rank 4"), "--rank: 4 is not in 0 .. 3"));
  CHECK(contains(complaint("--algorithm ring --world 4 --operation broadcast --root 4"),
                 "--root: 4 is not in 0 .. 3"));
  CHECK(contains(complaint("--algorithm ring --world 4 --root 1"), "--root: all_reduce has no root"));
  CHECK(complaint("--algorithm double_tree --world 4 --operation reduce --root 1") == "");
  CHECK(complaint("--algorithm hierarchical --world 4 --nodes 0,0,7,7") == "");
  CHECK(contains(complaint("--algorithm hierarchical --world 4 --nodes 0,0,7"),
                 "--nodes: 3 numbers for 4 ranks"));
  CHECK(
      contains(complaint("--algorithm ring --world 4 --nodes 0,0,7,7"), "only hierarchical looks at nodes"));
  CHECK(contains(complaint("--algorithm ring"), "--world is required"));
}

TEST_CASE("explain: what it would not look at is refused, not ignored") {
  const std::string selection = "--selection --world 4 ", pid = "--pid 1 ";
  CHECK(complaint(selection + "--transport shm --cores 2 --nodes 0,0,1,1 --tuning x") == "");
  CHECK(complaint(selection + "--operation reduce --type bf16 --op weighted_avg --reproducible") == "");
  CHECK(complaint(selection + "--operation broadcast --type u8") == "");
  CHECK(complaint(pid) == "");
  for (const std::string option : {"--json", "--rank 1", "--root 1", "--algorithm ring"}) {
    const std::string name = option.substr(0, option.find(' '));
    for (const std::string& mode : {selection, pid}) {
      for (const std::string& line : {mode + option, option + " " + mode}) {
        const std::string text = complaint(line);
        CAPTURE(line);
        CHECK(contains(text, name));
        CHECK(contains(text, "excludes"));
      }
    }
  }
  for (const char* option : {"--world 4", "--nodes 0,0", "--selection", "--operation all_reduce"})
    CHECK(contains(complaint(pid + option), "excludes"));
  for (const char* option :
       {"--transport shm", "--cores 2", "--tuning x", "--type bf16", "--op max", "--reproducible"})
    CHECK(contains(complaint(std::string("--algorithm ring --world 4 ") + option), "--selection"));
  CHECK(contains(complaint(selection + "--type f64s"), "--type: f64s is not one of: f64, f32, f16"));
  CHECK(contains(complaint(selection + "--op mean"), "--op: mean is not one of: sum, prod"));
  CHECK(contains(complaint(selection + "--op bit_xor"), "--op: there is no bit_xor of f32"));
  CHECK(contains(complaint(selection + "--type i32 --op weighted_avg"), "no weighted_avg of i32"));
  CHECK(contains(complaint(selection + "--operation scatter --op max"), "--op: scatter reduces nothing"));
  CHECK(
      contains(complaint(selection + "--operation all_gather --reproducible"), "--reproducible: all_gather"));
}

TEST_CASE("explain: the selection is that of the operation, the type and the demands that are asked for") {
  const std::string ranks = "--selection --world 4 --cores 2 --transport ";
  const auto uses = [&](const std::string& arguments, const std::string& line) {
    const auto ended = printed(ranks + arguments);
    const std::string& text = ended.second;
    CAPTURE(arguments);
    CAPTURE(text);
    CHECK(ended.first == 0);
    CHECK(contains(text, line));
    return text;
  };
  // The line of the largest sizes, f32 sums unless asked otherwise.
  CHECK(contains(uses("tcp", "all_reduce max ring"), ", f32 sums\n"));
  CHECK(contains(uses("tcp", "\nbarrier max dissemination"), "\nsend_recv max direct\n"));
  // Only the operation that is named.
  const std::string broadcast = uses("tcp --operation broadcast", "broadcast max ring");
  CHECK(!contains(broadcast, "all_reduce"));
  CHECK(!contains(broadcast, "barrier"));
  // A ring's sums are in no canonical order, nor do they meet their weights.
  const std::string reproducible = uses("tcp --operation all_reduce --reproducible", "all_reduce max direct");
  CHECK(contains(reproducible, ", f32 sums, reproducible\n"));
  CHECK(!contains(reproducible, " ring"));
  for (const std::string reduction : {"premul_sum", "weighted_avg"}) {
    const std::string weighted =
        uses("tcp --operation reduce_scatter --type bf16 --op " + reduction, "reduce_scatter max direct");
    CHECK(contains(weighted, ", bf16 " + reduction + "\n"));
    CHECK(!contains(weighted, " ring"));
    CHECK(!contains(weighted, "halving"));
  }
}

TEST_CASE("docs/algorithms.md prints what the command prints, for all that the catalogue has") {
  std::ifstream page(std::string(RONDO_SOURCE_ROOT) + "/docs/algorithms.md");
  const std::string prompt = "$ rondo explain ";
  std::set<std::string> titles;  // "ring all_reduce"
  for (std::string line; std::getline(page, line);) {
    if (line.rfind(prompt, 0) != 0) continue;
    std::string shown;
    const std::string arguments = line.substr(prompt.size());
    while (std::getline(page, line) && line != "```") shown += line + "\n";
    const auto [code, text] = printed(arguments);
    REQUIRE(code == 0);
    CAPTURE(arguments);
    CHECK(shown == text);
    titles.insert(shown.substr(2, shown.find(',') - 2));
  }
  for (const Schedule& schedule : catalogue())
    CHECK(titles.count(fmt::format("{} {}", name_of(schedule.algorithm), name_of(schedule.operation))) == 1);
}

TEST_CASE("explain: exit codes of the command") {
  CHECK(exit_code("explain --algorithm ring --world 4") == 0);
  CHECK(exit_code("explain --help") == 0);
  CHECK(exit_code("explain --algorithm rings --world 4") == 2);
  CHECK(exit_code("explain --algorithm dissemination --world 4") == 2);
  CHECK(exit_code("explain --selection --world 4") == 0);
  CHECK(exit_code("explain --selection --world 4 --json") == 2);
  CHECK(exit_code("explain --pid 1 --json") == 2);
  CHECK(exit_code("") == 2);
}
