// What rank 0 concludes from what the ranks say they have called.
#include "bootstrap/inquiry.hpp"

#include <doctest/doctest.h>

namespace rondo::test {
namespace {

using namespace bootstrap;

CallNote all_reduce(const std::string& count, const std::string& type = "f32") {
  return {"all_reduce of " + count + " " + type, {{"type", type}, {"count", count}}};
}
Account called(const CallNote& note) { return {note, true, "operation #7 (it)", true, 150}; }
Account not_called() { return {std::nullopt, false, "operation #6 (barrier)", false, 2100}; }

constexpr CallKey seventh{0, 7};

}  // namespace

TEST_CASE("inquiry: the minority is named, with the first field that differs") {
  Inquiry inquiry(seventh, 4);
  for (const Rank rank : {0, 1, 3}) inquiry.add(rank, called(all_reduce("1024")));
  CHECK_FALSE(inquiry.complete());
  CHECK_FALSE(inquiry.disagreement().has_value());
  inquiry.add(2, called(all_reduce("512", "f64")));
  CHECK(inquiry.complete());
  const auto found = inquiry.disagreement();
  REQUIRE(found.has_value());
  CHECK(found->text ==
        "the ranks disagree about collective #7: rank 2 called all_reduce of 512 f64, ranks 0, 1, 3 called "
        "all_reduce of 1024 f32 (type: f64 against f32). Every rank must make the same calls in the same "
        "order with "
        "the same arguments");
  for (Rank rank = 0; rank < 4; rank++) CHECK(found->blamed_by(rank) == 2);
}

TEST_CASE("inquiry: a tie names both sides, and each blames the other") {
  Inquiry inquiry(seventh, 4);
  for (Rank rank = 0; rank < 4; rank++) inquiry.add(rank, called(all_reduce(rank % 2 ? "6" : "5")));
  const auto found = inquiry.disagreement();
  REQUIRE(found.has_value());
  CHECK(found->text.find(
            "ranks 0, 2 called all_reduce of 5 f32, ranks 1, 3 called all_reduce of 6 f32 (count: 5 "
            "against 6)") != std::string::npos);
  CHECK(found->blamed_by(0) == 1);
  CHECK(found->blamed_by(2) == 1);
  CHECK(found->blamed_by(1) == 0);
  CHECK(found->blamed_by(3) == 0);
}

TEST_CASE(
    "inquiry: three calls by three ranks; the odd ones blame themselves or each other, never the rest") {
  Inquiry inquiry(seventh, 5);
  for (const Rank rank : {1, 2, 4}) inquiry.add(rank, called(all_reduce("8")));
  inquiry.add(0, called(all_reduce("9")));
  inquiry.add(3, called(all_reduce("10")));
  const auto found = inquiry.disagreement();
  REQUIRE(found.has_value());
  CHECK(found->sides == std::vector<std::vector<Rank>>{{1, 2, 4}, {0}, {3}});
  for (Rank rank = 0; rank < 5; rank++) CHECK(found->blamed_by(rank) == 0);
}

TEST_CASE("inquiry: a field that one side does not have differs") {
  Inquiry inquiry(seventh, 3);
  inquiry.add(0, called({"barrier", {{"operation", "barrier"}}}));
  for (const Rank rank : {1, 2}) inquiry.add(rank, called({"x", {{"operation", "barrier"}, {"root", "1"}}}));
  const auto found = inquiry.disagreement();
  REQUIRE(found.has_value());
  CHECK(found->text.find("(root: none against 1)") != std::string::npos);
}

TEST_CASE("inquiry: fields are compared by their names, wherever they stand") {
  // That of one side alone comes where it stands among its own.
  const CallNote plain{"plain", {{"type", "f32"}, {"reproducible", "no"}, {"algorithm", "ring"}}};
  const CallNote group{"group",
                       {{"type", "f32"}, {"vectors", "1"}, {"reproducible", "no"}, {"algorithm", "direct"}}};
  const auto told = [](const CallNote& first, const CallNote& second) {
    Inquiry inquiry(seventh, 2);
    inquiry.add(0, called(first));
    inquiry.add(1, called(second));
    return inquiry.disagreement()->text;
  };
  CHECK(told(plain, group).find("(vectors: none against 1)") != std::string::npos);
  CHECK(told(group, plain).find("(vectors: 1 against none)") != std::string::npos);
  const CallNote rooted{"rooted", {{"type", "f32"}, {"root", "2"}, {"algorithm", "ring"}}};
  const CallNote counted{"counted", {{"type", "f32"}, {"counts", "5 5"}, {"algorithm", "ring"}}};
  CHECK(told(rooted, counted).find("(root: 2 against none)") != std::string::npos);
  const CallNote fewer{"fewer", {{"type", "f32"}, {"algorithm", "ring"}}};
  CHECK(told(fewer, rooted).find("(root: none against 2)") != std::string::npos);
}

TEST_CASE("inquiry: who has not called, who does not answer and who has left are told apart") {
  Inquiry inquiry(seventh, 5);
  inquiry.add(0, called(all_reduce("8")));
  inquiry.add(1, not_called());
  inquiry.gone(4);
  inquiry.add(2, called(all_reduce("8")));
  CHECK_FALSE(inquiry.complete());  // rank 3
  CHECK(inquiry.behind() == std::vector<Rank>{1});
  const auto summary = inquiry.summary({0, 10, 20, 2900, 40});
  CHECK(summary.key == seventh);
  CHECK(summary.peer == 3u);  // the one that is silent, before those that are late
  CHECK(summary.text ==
        "rank 3 has not answered for 2.9 s; rank 4 has left; rank 1 has not called it: its last is operation "
        "#6 "
        "(barrier), over since 2.1 s");
}

TEST_CASE("inquiry: of many late ranks the first are described, the rest counted") {
  Inquiry inquiry(seventh, 100);
  inquiry.add(0, called(all_reduce("8")));
  for (Rank rank = 1; rank < 100; rank++) inquiry.add(rank, not_called());
  const auto summary = inquiry.summary(std::vector<uint64_t>(100));
  CHECK(summary.peer == 1u);
  CHECK(summary.text.find("rank 4 has not called it") != std::string::npos);
  CHECK(summary.text.find("rank 5 ") == std::string::npos);
  CHECK(summary.text.find("; and 95 more ranks") != std::string::npos);
}

TEST_CASE("inquiry: when all have called it alike, nobody is blamed") {
  Inquiry inquiry(seventh, 3);
  for (Rank rank = 0; rank < 3; rank++) inquiry.add(rank, called(all_reduce("8")));
  CHECK_FALSE(inquiry.disagreement().has_value());
  const auto summary = inquiry.summary({0, 0, 0});
  CHECK_FALSE(summary.peer.has_value());
  CHECK(summary.text == "every rank has called it");
}

TEST_CASE("inquiry: between two ranks only these two are asked") {
  Inquiry inquiry({pair_space(3, 1), 5}, 4);
  inquiry.add(3, called({"send of 5 f32 to rank 1", {{"type", "f32"}, {"count", "5"}}}));
  CHECK_FALSE(inquiry.complete());
  inquiry.add(1, called({"receive of 7 f32 from rank 3", {{"type", "f32"}, {"count", "7"}}}));
  CHECK(inquiry.complete());
  const auto found = inquiry.disagreement();
  REQUIRE(found.has_value());
  CHECK(found->text.find(
            "what rank 3 sends to rank 1: rank 1 called receive of 7 f32 from rank 3, rank 3 called "
            "send of 5 f32 to rank 1 (count: 7 against 5)") != std::string::npos);
  CHECK(found->blamed_by(1) == 3);
  CHECK(found->blamed_by(3) == 1);
}

}  // namespace rondo::test
