// Ranks that call different things, give up, or fork: what every rank is told, and when.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "check_lost.hpp"
#include "workers.hpp"

using namespace rondo::test;

namespace {

// The field in which one rank differs, and what it and the others say.
struct Field {
  const char *name, *odd, *others;
};
constexpr Field fields[] = {
    {"operation", "broadcast", "all_reduce"},
    {"type", "i32", "f32"},
    {"reduction", "max", "sum"},
    {"count", "999", "1000"},
    {"root", "1", "0"},
    {"order", "broadcast", "all_reduce"},
    {"root-of-nothing", "broadcast of 0 f32, root 1", "broadcast of 0 f32, root 0"},
    {"root-of-a-reduce", "reduce of 1000 f32, sum, root 1", "root 0"},
    {"root-of-a-gather", "root 1", "root 0"},
    {"root-of-a-scatter", "root 1", "root 0"},
    {"gather-or-scatter", "scatter", "gather"},
    {"scatter-or-reduce", "reduce of 1000 f32, sum, root 1", "scatter"},
    {"weighted-reduction", "premul_sum", "weighted_avg"},
    {"weights", "all_reduce of 1000 f32, sum", "premul_sum"},
    {"reproducible", "reproducible: yes", "no"},
    {"algorithm", "ring", "direct"},
    {"tag", "77", "66"},
    {"split", "split", "all_reduce of 1000 f32, sum"},
    {"duplicate", "duplicate", "split"},
    {"grow", "grow", "barrier"},
    {"exchange-type", "f64", "f32"},
    {"exchange-tag", "77", "66"},
    {"exchange-for-barrier", "all_to_all_v", "barrier"},
    {"barrier-for-exchange", "barrier", "all_to_all_v"},
    {"exchange-for-reduce", "all_to_all_v", "all_reduce"},
    {"reduce-for-exchange", "all_reduce", "all_to_all_v"},
    {"exchange-count", "all_to_all_v of 11 f32 to", "all_to_all_v of 10 f32 from"},
    {"late-exchange-count", "all_to_all_v of 11 f32 to", "all_to_all_v of 10 f32 from"}};

// What one rank sends to the next is known to these two alone, and neither is in the minority.
bool is_of_two(const Field& field) {
  return field.name == std::string("exchange-count") || field.name == std::string("late-exchange-count");
}

void check_two(const Report& told, uint32_t rank, const Situation& at) {
  const uint32_t next = (at.victim + 1) % at.world;
  CHECK(has(told.text, fmt::format("what rank {} sends to rank {}", at.victim, next)));
  if (rank != at.victim && rank != next)
    CHECK((told.peer == int(at.victim) || told.peer == int(next)));
  else
    CHECK(told.peer == int(rank == next ? at.victim : next));
}

void check_field(const Field& field, const Ended& ended, uint32_t rank, const Situation& at) {
  CAPTURE(std::string(field.name));
  CAPTURE(rank);
  CAPTURE(ended.out);
  const auto told = report(ended, field.name);
  REQUIRE(told);
  CHECK(told->code == "mismatch");
  CHECK(told->took < 1);
  // What is said beyond the call of this rank itself.
  const std::string said = told->text.substr(std::min(told->text.find("): "), told->text.size()));
  CHECK(has(said, field.odd));
  CHECK(has(said, field.others));
  if (field.name == std::string("root")) CHECK(has(said, "root"));
  CHECK(has(said, fmt::format("rank {}", at.victim)));
  if (is_of_two(field)) return check_two(*told, rank, at);
  if (at.world > 2 && rank != at.victim) CHECK(told->peer == int(at.victim));
  if (at.world == 2) CHECK(has(said, fmt::format("rank {}", 1 - at.victim)));
}

}  // namespace

TEST_CASE("disagreements: every field that differs is told to all ranks, with the odd rank and both values") {
  for (const Situation& at : situations()) {
    CAPTURE(at.transport);
    CAPTURE(at.world);
    CAPTURE(at.victim);
    Workers workers({at.world, at.transport, {"mismatch", std::to_string(at.victim)}, {"RONDO_TIMEOUT=5"}});
    const auto ended = workers.wait(-1, 60);
    for (uint32_t rank = 0; rank < at.world; rank++) {
      CHECK(ended[rank].code == 3);
      for (const Field& field : fields) check_field(field, ended[rank], rank, at);
    }
  }
}

TEST_CASE(
    "disagreements: abort by another thread ends every rank's call at once, and the next of who has none") {
  for (const Situation& at : situations()) {
    CAPTURE(at.transport);
    CAPTURE(at.world);
    // The last rank sleeps until then.
    Workers workers({at.world, at.transport, {"abort", std::to_string(at.victim), "1000"}});
    const auto ended = workers.wait();
    const double since = number_after(ended[at.victim], "aborts");
    for (uint32_t rank = 0; rank < at.world; rank++) {
      CAPTURE(rank);
      CAPTURE(ended[rank].out);
      CHECK(ended[rank].code == 3);
      const auto told = report(ended[rank], "error");
      REQUIRE(told);
      CHECK(told->code == "aborted");
      CHECK(has(told->text, fmt::format("rank {} aborted the communicator", at.victim)));
      if (rank != at.victim) CHECK(told->peer == int(at.victim));
      CHECK(told->at - since < 1);
      CHECK(number_after(ended[rank], "destroyed") < 1);
    }
  }
}

TEST_CASE("disagreements: a child of fork that lives on does not hide its parent's death") {
  auto all = situations();
  for (const std::string transport : {"tcp", "shm"})
    for (const uint32_t victim : {0u, 1u, 3u}) all.push_back({transport, 4, victim});
  for (const Situation& at : all) {
    CAPTURE(at.transport);
    CAPTURE(at.world);
    CAPTURE(at.victim);
    Workers workers({at.world, at.transport, {"fork", std::to_string(at.victim), "1000"}});
    REQUIRE(workers.all_say("runs"));
    REQUIRE(workers[at.victim].wait_for_output("child "));
    const double since = seconds_now();
    ::kill(workers[at.victim].pid(), SIGKILL);
    const auto ended = workers.wait();
    CHECK(workers[at.victim].alive().size() == 1);
    for (uint32_t rank = 0; rank < at.world; rank++) {
      if (rank == at.victim) continue;
      CAPTURE(rank);
      const Report told = check_lost(ended[rank], at.victim, since);
      CHECK(has(told.text, fmt::format("rank {} (pid ", at.victim)));
    }
  }
}

TEST_CASE("disagreements: a program that a rank runs inherits nothing of the job") {
  for (const Situation& at : situations()) {
    CAPTURE(at.transport);
    Workers workers({at.world, at.transport, {"exec"}});
    for (const Ended& ended : workers.wait()) {
      CAPTURE(ended.out);
      CHECK(ended.code == 0);
      CHECK(has(ended.out, fmt::format("fine {}", at.world)));
      CHECK(has(ended.out, "-> pipe:"));
      for (const char* kind : {"socket:", "memfd:", "anon_inode:"}) CHECK(!has(ended.out, kind));
    }
  }
}

TEST_CASE(
    "disagreements: a communicator in a static object is of use, and ends in order, after main has "
    "returned") {
  for (const Situation& at : situations()) {
    CAPTURE(at.transport);
    CAPTURE(at.world);
    Workers workers({at.world, at.transport, {"static", std::to_string(at.victim)}, {"RONDO_TLS=1"}});
    for (const Ended& ended : workers.wait()) {
      CAPTURE(ended.out);
      CHECK(ended.code == 0);
      CHECK(ended.err.empty());
    }
  }
}

TEST_CASE("disagreements: a child of fork that ends in order does no harm to the job") {
  for (const Situation& at : situations()) {
    CAPTURE(at.transport);
    Workers workers({at.world, at.transport, {"child"}});
    for (const Ended& ended : workers.wait()) {
      CAPTURE(ended.out);
      CHECK(ended.code == 0);
      CHECK(has(ended.out, fmt::format("fine {}", at.world)));
    }
  }
}
