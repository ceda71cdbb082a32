#include "bootstrap/wire.hpp"

#include <doctest/doctest.h>

#include "bootstrap/report.hpp"

using namespace rondo;
using namespace rondo::bootstrap;

namespace {

template <class T>
Bytes without_last(T bytes) {
  bytes.pop_back();
  return bytes;
}

Person person(uint32_t pid) {
  Person person{{4026531836, pid, 77 + pid}, "node-1"};
  person.boot[3] = std::byte(pid);
  person.door[5] = std::byte(pid + 1);
  return person;
}

DataAddress address(uint16_t port) {
  DataAddress address{4, port, {}};
  address.ip[0] = std::byte(127);
  return address;
}

}  // namespace

TEST_CASE("wire: the first bytes of a Hello are what they are in every version") {
  Hello hello;
  hello.version = 0x0102;
  hello.order = ByteOrder::big;
  hello.purpose = Purpose::data;
  hello.build = "1.2.3";
  hello.nonce[0] = std::byte(0xee);
  const Bytes bytes = encode(hello);
  REQUIRE(bytes.size() == hello_bytes);
  const std::string_view expected(
      "RONDO\r\n\x97\x02\x01\x02\x02\x00\x00\x00\x00"
      "1.2.3\0\0\0\0\0\0\0\0\0\0\0\xee",
      33);
  CHECK(std::string_view(reinterpret_cast<const char*>(bytes.data()), 33) == expected);

  const auto back = decode_hello(std::span(bytes).first<hello_bytes>());
  REQUIRE(back.has_value());
  CHECK(back->version == 0x0102);
  CHECK(back->order == ByteOrder::big);
  CHECK(back->purpose == Purpose::data);
  CHECK_FALSE(back->has_secret);
  CHECK(back->build == "1.2.3");
  CHECK(back->nonce == hello.nonce);

  Bytes other = bytes;
  other[4] = std::byte('X');
  CHECK_FALSE(decode_hello(std::span(other).first<hello_bytes>()).has_value());
}

TEST_CASE("wire: a stranger's build cannot write control characters into a log") {
  Hello hello;
  hello.build = "1.0\n\x1b[31m evil";
  const Bytes bytes = encode(hello);
  CHECK(decode_hello(std::span(bytes).first<hello_bytes>())->build == "1.031mevil");
}

TEST_CASE("wire: proofs and answers") {
  const Proof proof{{0x0102030405060708, 7, 9}, {std::byte(1)}};
  const Bytes bytes = encode(proof);
  REQUIRE(bytes.size() == proof_bytes);
  CHECK(bytes[0] == std::byte(8));
  const auto back = decode_proof(std::span(bytes).first<proof_bytes>());
  REQUIRE(back.has_value());
  CHECK(back->claim == proof.claim);
  CHECK(back->mac == proof.mac);

  Bytes answer = encode(Answer{Verdict::unknown_tag, {std::byte(2)}});
  REQUIRE(answer.size() == answer_bytes);
  CHECK(decode_answer(std::span(answer).first<answer_bytes>())->verdict == Verdict::unknown_tag);
  answer[0] = std::byte(0);
  CHECK_FALSE(decode_answer(std::span(answer).first<answer_bytes>()).has_value());
}

TEST_CASE("wire: control messages come back as they went, and never when cut or prolonged") {
  const Join join{3, 60'000, 59'000, person(5), address(4444)};
  CHECK(decode_join(encode(join)) == join);
  CHECK_FALSE(decode_join(without_last(encode(join))).has_value());

  const Policy policy{"direct", true, "all_reduce 8192 one_shot", 96};
  const Welcome welcome{0xfedcba9876543210,     Transport::shm,  policy, 12'345, 10'000,
                        {person(1), person(2)}, {{}, address(2)}};
  CHECK(decode_welcome(encode(welcome)) == welcome);
  Bytes longer = encode(welcome);
  longer.push_back({});
  CHECK_FALSE(decode_welcome(longer).has_value());
  Bytes unknown = encode(welcome);
  unknown[8] = std::byte(77);  // its transport
  CHECK_FALSE(decode_welcome(unknown).has_value());
  Welcome coreless = welcome;
  coreless.policy.cores = 0;
  CHECK_FALSE(decode_welcome(encode(coreless)).has_value());
  // A world of four thousand million needs no memory until its bytes are there.
  CHECK_FALSE(
      decode_welcome(
          Writer().u64(1).u8(1).text("", 1).u8(0).text("", 1).u32(1).u32(0).u32(0).u32(0xffffffff).take())
          .has_value());

  const auto failure = decode_failure(encode(Failure{ErrorCode::timeout, 3, "rank 3 is late"}));
  REQUIRE(failure.has_value());
  CHECK(failure->code == ErrorCode::timeout);
  CHECK(failure->peer == 3u);
  CHECK(failure->text == "rank 3 is late");
  CHECK_FALSE(failure->complete);
  CHECK(decode_failure(encode(Failure{ErrorCode::timeout, 3, "", true}))->complete);
  CHECK_FALSE(decode_failure(encode(Failure{ErrorCode::timeout, {}, ""}))->peer.has_value());
  CHECK_FALSE(decode_failure(encode(Failure{ErrorCode(99), {}, ""})).has_value());
  CHECK(decode_failure(encode(Failure{ErrorCode::system, {}, std::string(100'000, 'x')}))->text.size() ==
        longest_text);

  const Shared shared{false, true, 3, "rank 3 closed the connection"};
  CHECK(decode_shared(encode(shared)) == shared);
  CHECK_FALSE(decode_shared(without_last(encode(shared))).has_value());
  const Groups groups{{0, 1, 1}, 2, "rank 2 has no memory to share"};
  CHECK(decode_groups(encode(groups)) == groups);
  CHECK_FALSE(decode_groups(without_last(encode(groups))).has_value());
  CHECK_FALSE(decode_groups(Writer().u32(0).u16(0).u32(0xffffffff).take()).has_value());

  CHECK(decode_lane(encode_lane(65535)) == uint16_t(65535));
  CHECK_FALSE(decode_lane({}).has_value());
}

TEST_CASE("wire: a text longer than its sender may make it is malformed, and so are more fields than that") {
  const auto shared = [](size_t bytes) {
    return Writer().u8(0).u8(0).u32(1).text(std::string(bytes, 'x'), bytes).take();
  };
  CHECK(decode_shared(shared(longest_text)).has_value());
  CHECK_FALSE(decode_shared(shared(longest_text + 1)).has_value());
  const auto report = [](size_t fields) {
    Writer out;
    out.u8(0).u64(0).u64(1).u8(1).u8(0).u8(0).u32(0).text("", 0).text("call", 4).u8(uint8_t(fields));
    for (size_t i = 0; i < fields; ++i) out.text("name", 4).text("value", 5);
    return out.take();
  };
  CHECK(decode_report(report(most_fields)).has_value());
  CHECK_FALSE(decode_report(report(most_fields + 1)).has_value());
}

TEST_CASE("wire: reports, questions and summaries come back as they went, and never when cut") {
  const CallKey key{pair_space(3, 1), 77};
  CHECK(sender_of(key) == 3);
  CHECK(receiver_of(key) == 1);
  CHECK(decode_key(encode(key)) == key);
  CHECK_FALSE(decode_key(without_last(encode(key))).has_value());

  const CallNote note{"send of 5 f32 to rank 1", {{"type", "f32"}, {"count", "5"}}};
  const Report report{Report::Reason::ends, key, {note, true, "operation #9 (barrier)", true, 1234}};
  CHECK(decode_report(encode(report)) == report);
  CHECK_FALSE(decode_report(without_last(encode(report))).has_value());
  const Report nothing{Report::Reason::asked, {0, 1}, {}};
  CHECK(decode_report(encode(nothing)) == nothing);
  Bytes unknown = encode(report);
  unknown[0] = std::byte(9);
  CHECK_FALSE(decode_report(unknown).has_value());
  // The longest report is one that a channel takes.
  Report longest{Report::Reason::quiet,
                 key,
                 {CallNote{std::string(9999, 'x'), {}}, true, std::string(9999, 'y'), true, 1}};
  longest.account.call->fields.assign(99, {std::string(999, 'n'), std::string(999, 'v')});
  CHECK(encode(longest).size() <= longest_small_body);

  const Summary summary{key, 2, "rank 2 has not called it"};
  CHECK(decode_summary(encode(summary)) == summary);
  CHECK_FALSE(decode_summary(without_last(encode(summary))).has_value());
}

TEST_CASE("wire: what ranks that regroup tell each other comes back as it went, and never when cut") {
  const RegroupNote note{RegroupNote::Word::plan, 1, 0x1234567890, {1, 2, 5}, "unix:@somewhere", true};
  CHECK(decode_regroup(encode(note)) == note);
  CHECK_FALSE(decode_regroup(without_last(encode(note))).has_value());
  Bytes unknown = encode(note);
  unknown[0] = std::byte(9);
  CHECK_FALSE(decode_regroup(unknown).has_value());
}

TEST_CASE("wire: a frame is 16 bytes and its body, and its kind is known") {
  Bytes bytes = encode(Message{Kind::dial, 5, 2, encode_lane(1)});
  REQUIRE(bytes.size() == head_bytes + 2);
  const auto head = decode_head(std::span<const std::byte>(bytes).first<head_bytes>());
  REQUIRE(head.has_value());
  CHECK(head->kind == Kind::dial);
  CHECK(head->from == 5);
  CHECK(head->to == 2);
  CHECK(head->body_bytes == 2);
  bytes[4] = std::byte(77);
  CHECK_FALSE(decode_head(std::span<const std::byte>(bytes).first<head_bytes>()).has_value());
}
