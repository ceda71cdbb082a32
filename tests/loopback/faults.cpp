// What RONDO_FAULT does, over every transport: which error each rank gets, and when.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/log.hpp"
#include "ranks.hpp"

namespace rondo::test {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t world = 3;
constexpr size_t count = 100'000;
constexpr milliseconds timeout{500}, slack{500}, long_timeout{5000};

struct Outcome {
  std::optional<Error> error;
  std::chrono::steady_clock::time_point began{}, ended{};
  milliseconds took{};
  milliseconds since_first{};  // from the moment that the first rank began
  size_t wrong = 0;            // elements
};

// The second of two all-reduces on every rank; the first must be right.
std::vector<Outcome> second_call(const std::string& fault, const char* transport, const char* algorithm,
                                 milliseconds limit) {
  auto options = options_of_ranks(world);
  for (Options& own : options) {
    own.fault = fault;
    own.transport = transport;
    own.algorithm = algorithm;
    own.timeout = limit;
  }
  std::vector<Outcome> outcomes(world);
  on_ranks(options, [&](Communicator& comm) {
    Outcome& mine = outcomes[comm.rank()];
    std::vector<float> data(count, float(comm.rank()));
    const auto first = comm.all_reduce(std::span(data));
    CHECK_MESSAGE(first.ok(), (first ? "" : first.error().message));
    std::fill(data.begin(), data.end(), float(comm.rank()));
    mine.began = std::chrono::steady_clock::now();
    if (const auto done = comm.all_reduce(std::span(data)); !done) mine.error = done.error();
    mine.ended = std::chrono::steady_clock::now();
    for (const float x : data) mine.wrong += x != 3.f;
  });
  const auto first = std::ranges::min(outcomes, {}, &Outcome::began).began;
  for (Outcome& outcome : outcomes) {
    outcome.took = std::chrono::duration_cast<milliseconds>(outcome.ended - outcome.began);
    outcome.since_first = std::chrono::duration_cast<milliseconds>(outcome.ended - first);
  }
  return outcomes;
}

// Over every transport, along links and along publications where there are any. The log would be long.
void everywhere(const std::string& fault, const std::function<void(Rank, const Outcome&)>& check,
                milliseconds limit = timeout) {
  log::set_level(log::Level::error);
  for (const char* transport : {"tcp", "shm"})
    for (const char* algorithm : {"ring", "direct"}) {
      CAPTURE(std::string(transport));
      CAPTURE(std::string(algorithm));
      CAPTURE(fault);
      const auto outcomes = second_call(fault, transport, algorithm, limit);
      for (Rank rank = 0; rank < world; rank++) {
        CAPTURE(rank);
        CAPTURE(outcomes[rank].took.count());
        CAPTURE(outcomes[rank].error ? outcomes[rank].error->message : "no error");
        check(rank, outcomes[rank]);
      }
    }
  log::set_level(log::Level::warn);
}

void check_late(Rank, const Outcome& outcome) {
  REQUIRE(outcome.error);
  CHECK(outcome.error->code == ErrorCode::timeout);
  CHECK(outcome.error->message.find("operation #2 (all_reduce of 100000 f32, sum)") != std::string::npos);
  CHECK(outcome.took >= timeout - milliseconds(200));
  CHECK(outcome.took < timeout + slack);
}

void check_right(Rank, const Outcome& outcome) {
  CHECK(!outcome.error);
  CHECK(outcome.wrong == 0);
}

}  // namespace

TEST_CASE("faults: what is dropped is silence, and every rank's call ends at its deadline") {
  everywhere("drop@rank=1,operation=2", check_late);
  everywhere("drop@rank=1,operation=2,peer=2,after=50000", check_late);
}

TEST_CASE("faults: a stall that lasts ends every call at its deadline, a short one only delays it") {
  everywhere("stall@rank=2,operation=2,after=1000", check_late);
  everywhere("stall@rank=2,operation=2,for=250;stall@rank=0,operation=1,for=50",
             [](Rank rank, const auto& o) {
               check_right(rank, o);
               CHECK(o.since_first >= milliseconds(250));
               CHECK(o.took < milliseconds(300) + slack);
             });
}

TEST_CASE("faults: a link that closes is peer_lost on every rank at once") {
  for (const char* fault : {"close@rank=1,operation=2", "close@rank=1,operation=2,peer=2,after=1000"})
    everywhere(
        fault,
        [](Rank, const Outcome& outcome) {
          REQUIRE(outcome.error);
          CHECK(outcome.error->code == ErrorCode::peer_lost);
          const std::string& text = outcome.error->message;
          CHECK((text.find("in the middle of the operation") != text.npos ||
                 text.find("closed its end of what this one publishes") != text.npos));
          CHECK(outcome.took < milliseconds(1000));
        },
        long_timeout);
}

TEST_CASE("faults: one wrong byte of the payload is one wrong element") {
  for (const char* transport : {"tcp", "shm"})
    for (const char* algorithm : {"ring", "direct"}) {
      CAPTURE(std::string(transport));
      CAPTURE(std::string(algorithm));
      log::set_level(log::Level::error);
      size_t wrong = 0;
      for (const auto& outcome :
           second_call("corrupt@rank=1,operation=2,after=2003", transport, algorithm, timeout)) {
        CHECK(!outcome.error);
        CHECK(outcome.wrong <= 1);
        wrong += outcome.wrong;
      }
      log::set_level(log::Level::warn);
      CHECK(wrong >= 1);
    }
}

TEST_CASE("faults: one wrong byte of a header is a mismatch on every rank at once") {
  everywhere(
      "corrupt@rank=1,operation=2,header,after=15",
      [](Rank, const Outcome& outcome) {
        REQUIRE(outcome.error);
        CHECK(outcome.error->code == ErrorCode::mismatch);
        CHECK(outcome.took < milliseconds(1000));
      },
      long_timeout);
}

TEST_CASE("faults: those of other operations and peers do nothing, nor do those of the job in its parts") {
  everywhere("drop@rank=1,operation=3;kill@rank=0,operation=2,after=100000000;corrupt@rank=2,operation=4",
             check_right);
  auto options = options_of_ranks(2);
  for (Options& own : options) own.fault = "drop@rank=1,operation=3";
  on_ranks(options, [&](Communicator& comm) {
    auto part = comm.duplicate();  // two operations of `comm`
    REQUIRE(part.ok());
    for (int i = 0; i < 4; i++) {
      std::vector<float> data(10, 1.f);
      CHECK(part->all_reduce(std::span(data)).ok());
    }
  });
}

}  // namespace rondo::test
