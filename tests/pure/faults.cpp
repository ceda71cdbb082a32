// The grammar of RONDO_FAULT.
#include <doctest/doctest.h>

#include "base/fault.hpp"
#include "variables.hpp"

using namespace rondo;
using Kind = Fault::Kind;

TEST_CASE("faults: every kind and item is read") {
  const auto faults = parse_faults(
      "kill@rank=2,operation=5;drop@rank=0,operation=1,peer=3,after=1000;stall@operation=7,rank=1,for=250;"
      "stall@rank=1,operation=8;close@rank=3,operation=18446744073709551615,after=0;"
      "corrupt@rank=2,operation=1,after=15,header;",
      4);
  REQUIRE_MESSAGE(faults.ok(), (faults ? "" : faults.error().message));
  const std::vector<Fault> expected{
      {.kind = Kind::kill, .rank = 2, .operation = 5},
      {.kind = Kind::drop, .rank = 0, .operation = 1, .peer = 3, .after = 1000},
      {.kind = Kind::stall, .rank = 1, .operation = 7, .lasts = milliseconds(250)},
      {.kind = Kind::stall, .rank = 1, .operation = 8},
      {.kind = Kind::close, .rank = 3, .operation = UINT64_MAX, .after = 0},
      {.kind = Kind::corrupt, .rank = 2, .operation = 1, .after = 15, .header = true}};
  CHECK(*faults == expected);
  CHECK(parse_faults("", 1)->empty());
}

TEST_CASE("faults: what is wrong is said, and what would be right") {
  struct Bad {
    const char *text, *complaint;
  };
  for (const Bad& bad : {
           Bad{"explode@rank=1,operation=1", "\"explode\" is no kind of fault"},
           Bad{"kill", "\"kill\" does not say which rank"},
           Bad{"kill@operation=1", "does not say which rank"},
           Bad{"kill@rank=1", "does not say which operation"},
           Bad{"kill@rank=4,operation=1", "rank=4 must be a whole number from 0 to 3"},
           Bad{"kill@rank=-1,operation=1", "rank=-1 must be"},
           Bad{"kill@rank=1,operation=0", "operation=0 must be a whole number from 1"},
           Bad{"kill@rank=1,operation=99999999999999999999", "operation=9999"},
           Bad{"kill@rank=1,operation=2x", "operation=2x must be"},
           Bad{"kill@rank=1,operation=", "operation= must be"},
           Bad{"kill@rank=1,rank=1,operation=1", "rank is there twice"},
           Bad{"kill@rank=1,operation=1,when=2", "\"when=2\" is none of the items"},
           Bad{"drop@rank=1,operation=1,peer=1", "rank and peer are the same"},
           Bad{"drop@rank=1,operation=1,for=5", "a drop has no duration"},
           Bad{"stall@rank=1,operation=1,for=0", "for=0 must be a whole number from 1"},
           Bad{"drop@rank=1,operation=1,header", "header is not for a drop"},
           Bad{"corrupt@rank=1,operation=1,header,header", "header is there twice"},
           Bad{"corrupt@rank=1,operation=1,header,after=16", "a header has 16 bytes"},
           Bad{"kill@rank=1,operation=1;;", "\"\" is no kind of fault"},
       }) {
    CAPTURE(std::string(bad.text));
    const auto faults = parse_faults(bad.text, 4);
    REQUIRE(!faults.ok());
    CAPTURE(faults.error().message);
    CHECK(faults.error().code == ErrorCode::invalid_argument);
    CHECK(faults.error().message.find(bad.complaint) != std::string::npos);
    CHECK(faults.error().message.find("the grammar is KIND@rank=R,operation=K") != std::string::npos);
  }
}

TEST_CASE("faults: RONDO_FAULT is read and checked with the other variables, and code wins") {
  test::Variables all{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"RONDO_ROOT", "unix:@job"}};
  CHECK(resolve({}, test::fake(all))->fault.empty());
  all["RONDO_FAULT"] = "kill@rank=2,operation=1";
  const auto bad = resolve({}, test::fake(all));
  REQUIRE(!bad.ok());
  CHECK(bad.error().code == ErrorCode::invalid_argument);
  CHECK(bad.error().message.find("RONDO_FAULT=kill@rank=2,operation=1: rank=2 must be") == 0);
  all["RONDO_FAULT"] = "kill@rank=1,operation=1";
  CHECK(resolve({}, test::fake(all))->fault == "kill@rank=1,operation=1");
  Options in_code;
  in_code.fault = "drop@rank=0,operation=2";
  CHECK(resolve(in_code, test::fake(all))->fault == in_code.fault);
  in_code.fault = "no fault";
  CHECK(resolve(in_code, test::fake(all)).error().message.find("Options::fault=no fault: ") == 0);
}
