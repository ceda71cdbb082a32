// The flight recorder: what the driver writes, any thread may read meanwhile.
#include "engine/recorder.hpp"

#include <doctest/doctest.h>

#include <thread>

namespace rondo::test {
namespace {

using engine::Call;
using engine::Record;
using engine::Recorder;
using schedule::Operation;

// All that a record says follows from its number, so that a torn one would show.
Record record_of(uint64_t number) {
  Record record;
  record.sequence = number;
  record.collective = number;
  record.call = {.operation = number % 2 ? Operation::all_reduce : Operation::broadcast,
                 .part_of = engine::PartOf(number % 4),
                 .algorithm = number % 2 ? schedule::Algorithm::ring : schedule::Algorithm::tree,
                 .type = number % 2 ? DataType::f32 : DataType::i64,
                 .count = number * 3,
                 .root = Rank(number % 1000)};
  record.began = TimePoint(TimePoint::duration(int64_t(number)));
  return record;
}

void begin(Recorder& recorder, const Record& record) { recorder.begin(record, record.call, record.began); }

bool is_whole(const Record& record) {
  const Record right = record_of(record.sequence);
  return record.collective == right.collective && record.call.operation == right.call.operation &&
         record.call.part_of == right.call.part_of && record.call.algorithm == right.call.algorithm &&
         record.call.type == right.call.type && record.call.count == right.call.count &&
         record.call.root == right.call.root && record.began == right.began;
}

}  // namespace

TEST_CASE("recorder: keeps the last operations, whole") {
  Recorder recorder;
  CHECK(recorder.last() == 0);
  CHECK_FALSE(recorder.at(0).has_value());
  CHECK(recorder.text(4) == "");
  for (uint64_t number = 1; number <= 100; number++) {
    begin(recorder, record_of(number));
    if (number < 100) recorder.end(number != 99);
  }
  CHECK(recorder.last() == 100);
  CHECK_FALSE(recorder.at(36).has_value());
  for (uint64_t number = 37; number <= 100; number++) {
    const auto record = recorder.at(number);
    REQUIRE(record.has_value());
    CHECK(is_whole(*record));
  }
  CHECK(recorder.at(98)->outcome == Record::Outcome::done);
  CHECK(recorder.at(99)->outcome == Record::Outcome::failed);
  CHECK(recorder.at(100)->outcome == Record::Outcome::running);
  CHECK(recorder.text(2).find("#99 grow: failed after ") == 0);
}

TEST_CASE("recorder: the parts of an uneven operation and the peers of a send come back") {
  Recorder recorder;
  Record uneven = record_of(1);
  uneven.call.parts = std::make_shared<const schedule::Parts>(schedule::Parts{{0, 3, 5}, {0, 3, 5}});
  begin(recorder, uneven);
  CHECK(*recorder.at(1)->call.parts == *uneven.call.parts);
  Record pair = record_of(2);
  pair.call.operation = Operation::send_recv;
  pair.call.to = 7;
  pair.call.from = schedule::nobody;
  begin(recorder, pair);
  CHECK(recorder.at(2)->call.to == 7);
  CHECK(recorder.at(2)->call.from == schedule::nobody);
  CHECK(recorder.at(2)->call.parts == nullptr);
}

TEST_CASE("recorder: what is read while it is overwritten is whole or not there") {
  Recorder recorder;
  constexpr uint64_t most = 200'000;
  std::thread driver([&] {
    for (uint64_t number = 1; number <= most; number++) {
      begin(recorder, record_of(number));
      recorder.end(true);
    }
  });
  uint64_t seen = 0, torn = 0;
  for (bool goes_on = true; goes_on;) {
    const uint64_t last = recorder.last();
    goes_on = last < most;
    // Also the oldest, which is overwritten next.
    for (const uint64_t number : {last, last > 63 ? last - 63 : 0}) {
      const auto record = recorder.at(number);
      seen += record.has_value();
      torn += record && (record->sequence != number || !is_whole(*record));
    }
  }
  driver.join();
  CHECK(torn == 0);
  CHECK(is_whole(*recorder.at(most)));
  CHECK(seen > 0);
}

}  // namespace rondo::test
