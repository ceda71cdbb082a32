#include "bootstrap/wire.hpp"

#include <bit>

namespace rondo::bootstrap {
namespace {

// The line ends and the high byte catch text transfers, as in PNG's signature.
constexpr std::string_view magic("RONDO\r\n\x97", 8);
constexpr size_t build_bytes = 16;

void write(Writer& out, const Person& person) {
  out.u32(uint32_t(person.process.pid))
      .text(person.host, longest_host)
      .raw(person.boot)
      .raw(person.door)
      .u32(person.node);
  out.u64(person.process.pid_namespace).u64(person.process.start);
}
Person read_person(Reader& in) {
  Person person;
  person.process.pid = in.u32();
  person.host = in.text(longest_host);
  in.raw(person.boot);
  in.raw(person.door);
  person.node = in.u32();
  person.process.pid_namespace = in.u64();
  person.process.start = in.u64();
  return person;
}
void write(Writer& out, const DataAddress& address) {
  out.u8(address.family).u8(0).u16(address.port).raw(address.ip);
}
DataAddress read_address(Reader& in) {
  DataAddress address;
  address.family = in.u8();
  in.u8();
  address.port = in.u16();
  in.raw(address.ip);
  return address;
}

std::optional<ErrorCode> error_code(uint8_t value) {
  switch (const auto code = ErrorCode(value); code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::timeout:
    case ErrorCode::peer_lost:
    case ErrorCode::mismatch:
    case ErrorCode::refused:
    case ErrorCode::aborted:
    case ErrorCode::system:
      return code;
  }
  return std::nullopt;
}

}  // namespace

ByteOrder native_order() noexcept {
  return std::endian::native == std::endian::little ? ByteOrder::little : ByteOrder::big;
}

Bytes encode(const Hello& hello) {
  Writer out;
  out.raw(bytes_of(magic)).u16(hello.version).u8(uint8_t(hello.order)).u8(uint8_t(hello.purpose));
  const std::string_view build = std::string_view(hello.build).substr(0, build_bytes);
  out.u8(hello.has_secret)
      .u8(hello.tls)
      .zeros(2)
      .raw(bytes_of(build))
      .zeros(build_bytes - build.size())
      .raw(hello.nonce);
  return out.take();
}

std::optional<Hello> decode_hello(std::span<const std::byte, hello_bytes> data) {
  if (std::memcmp(data.data(), magic.data(), magic.size()) != 0) return std::nullopt;
  Reader in(data.subspan(magic.size()));
  Hello hello;
  hello.version = in.u16();
  hello.order = ByteOrder(in.u8());
  hello.purpose = Purpose(in.u8());
  hello.has_secret = in.u8() != 0;
  hello.tls = in.u8() != 0;
  in.raw(2);
  // Only what is harmless in a log line: the sender is not proven yet.
  for (const std::byte byte : in.raw(build_bytes))
    if (const char c = char(byte); (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-')
      hello.build += c;
  in.raw(hello.nonce);
  return hello;
}

Bytes encode(const Claim& claim) {
  return Writer().u64(claim.tag).u32(claim.rank).u16(claim.lane).u16(0).take();
}

Bytes encode(const Proof& proof) { return Writer().raw(encode(proof.claim)).raw(proof.mac).take(); }

std::optional<Proof> decode_proof(std::span<const std::byte, proof_bytes> data) {
  Reader in(data);
  Proof proof;
  proof.claim = {in.u64(), in.u32(), in.u16()};
  if (in.u16() != 0) return std::nullopt;
  in.raw(proof.mac);
  return proof;
}

Bytes encode(const Answer& answer) {
  return Writer().u8(uint8_t(answer.verdict)).zeros(7).raw(answer.mac).take();
}

std::optional<Answer> decode_answer(std::span<const std::byte, answer_bytes> data) {
  Reader in(data);
  Answer answer{Verdict(in.u8()), {}};
  in.raw(7);
  in.raw(answer.mac);
  switch (answer.verdict) {
    case Verdict::welcome:
    case Verdict::wrong_secret:
    case Verdict::unknown_tag:
      return answer;
  }
  return std::nullopt;
}

Bytes encode(const Message& message) {
  Writer out;
  out.u32(uint32_t(message.body.size())).u8(uint8_t(message.kind)).zeros(3).u32(message.from).u32(message.to);
  return out.raw(message.body).take();
}

std::optional<Head> decode_head(std::span<const std::byte, head_bytes> data) {
  Reader in(data);
  Head head;
  head.body_bytes = in.u32();
  head.kind = Kind(in.u8());
  in.raw(3);
  head.from = in.u32();
  head.to = in.u32();
  switch (head.kind) {
    case Kind::join:
    case Kind::welcome:
    case Kind::failed:
    case Kind::leave:
    case Kind::dial:
    case Kind::shared:
    case Kind::groups:
    case Kind::report:
    case Kind::ask:
    case Kind::summary:
    case Kind::beat:
    case Kind::ended:
    case Kind::regroup:
      return head;
  }
  return std::nullopt;
}

Bytes encode(const Join& join) {
  Writer out;
  out.u32(join.world).u32(join.timeout_ms).u32(join.remaining_ms);
  write(out, join.person);
  write(out, join.listener);
  return out.take();
}

std::optional<Join> decode_join(std::span<const std::byte> data) {
  Reader in(data);
  Join join;
  join.world = in.u32();
  join.timeout_ms = in.u32();
  join.remaining_ms = in.u32();
  join.person = read_person(in);
  join.listener = read_address(in);
  if (!in.finished()) return std::nullopt;
  return join;
}

Bytes encode(const Welcome& welcome) {
  Writer out;
  out.u64(welcome.epoch).u8(uint8_t(welcome.transport));
  out.text(welcome.policy.algorithm, longest_algorithm).u8(welcome.policy.reproducible);
  out.text(welcome.policy.table, longest_table).u32(welcome.policy.cores);
  out.u32(welcome.remaining_ms).u32(welcome.heartbeat_ms);
  out.u32(uint32_t(welcome.persons.size()));
  for (size_t rank = 0; rank < welcome.persons.size(); ++rank) {
    write(out, welcome.persons[rank]);
    write(out, welcome.listeners[rank]);
  }
  return out.take();
}

std::optional<Welcome> decode_welcome(std::span<const std::byte> data) {
  Reader in(data);
  Welcome welcome;
  welcome.epoch = in.u64();
  welcome.transport = Transport(in.u8());
  welcome.policy.algorithm = in.text(longest_algorithm);
  welcome.policy.reproducible = in.u8() != 0;
  welcome.policy.table = in.text(longest_table);
  welcome.policy.cores = in.u32();
  welcome.remaining_ms = in.u32();
  welcome.heartbeat_ms = in.u32();
  const uint32_t world = in.u32();
  for (uint32_t rank = 0; rank < world && in.ok(); ++rank) {
    welcome.persons.push_back(read_person(in));
    welcome.listeners.push_back(read_address(in));
  }
  if (!in.finished() || welcome.policy.cores == 0) return std::nullopt;
  switch (welcome.transport) {
    case Transport::automatic:
    case Transport::tcp:
    case Transport::shm:
      return welcome;
  }
  return std::nullopt;
}

Bytes encode(const Shared& shared) {
  return Writer().u8(shared.ok).u8(shared.consequence).u32(shared.peer).text(shared.why, longest_text).take();
}

std::optional<Shared> decode_shared(std::span<const std::byte> data) {
  Reader in(data);
  Shared shared;
  shared.ok = in.u8() != 0;
  shared.consequence = in.u8() != 0;
  shared.peer = in.u32();
  shared.why = in.text(longest_text);
  if (!in.finished()) return std::nullopt;
  return shared;
}

Bytes encode(const Groups& groups) {
  Writer out;
  out.u32(groups.peer).text(groups.why, longest_text).u32(uint32_t(groups.group.size()));
  for (const uint32_t group : groups.group) out.u32(group);
  return out.take();
}

std::optional<Groups> decode_groups(std::span<const std::byte> data) {
  Reader in(data);
  Groups groups;
  groups.peer = in.u32();
  groups.why = in.text(longest_text);
  const uint32_t world = in.u32();
  for (uint32_t rank = 0; rank < world && in.ok(); ++rank) groups.group.push_back(in.u32());
  if (!in.finished()) return std::nullopt;
  return groups;
}

Bytes encode(const RegroupNote& note) {
  Writer out;
  out.u8(uint8_t(note.word)).u32(note.leader).u64(note.number).text(note.root, longest_text).u8(note.silent);
  out.u32(uint32_t(note.ranks.size()));
  for (const Rank rank : note.ranks) out.u32(rank);
  return out.take();
}

std::optional<RegroupNote> decode_regroup(std::span<const std::byte> data) {
  Reader in(data);
  RegroupNote note;
  note.word = RegroupNote::Word(in.u8());
  note.leader = in.u32();
  note.number = in.u64();
  note.root = in.text(longest_text);
  note.silent = in.u8() != 0;
  const uint32_t count = in.u32();
  for (uint32_t i = 0; i < count && in.ok(); ++i) note.ranks.push_back(in.u32());
  if (!in.finished()) return std::nullopt;
  switch (note.word) {
    case RegroupNote::Word::idle:
    case RegroupNote::Word::waits:
    case RegroupNote::Word::gone_on:
    case RegroupNote::Word::plan:
    case RegroupNote::Word::joined:
      return note;
  }
  return std::nullopt;
}

Bytes encode(const Failure& failure) {
  return Writer()
      .u8(uint8_t(failure.code))
      .u8(failure.peer.has_value())
      .u8(failure.complete)
      .u32(failure.peer.value_or(0))
      .text(failure.text, longest_text)
      .take();
}

std::optional<Failure> decode_failure(std::span<const std::byte> data) {
  Reader in(data);
  const auto code = error_code(in.u8());
  const bool has_peer = in.u8() != 0;
  const bool complete = in.u8() != 0;
  const Rank peer = in.u32();
  std::string text = in.text(longest_text);
  if (!in.finished() || !code) return std::nullopt;
  return Failure{*code, has_peer ? std::optional(peer) : std::nullopt, std::move(text), complete};
}

Bytes encode_rank(Rank rank) { return Writer().u32(rank).take(); }

std::optional<Rank> decode_rank(std::span<const std::byte> data) {
  Reader in(data);
  const Rank rank = in.u32();
  if (!in.finished()) return std::nullopt;
  return rank;
}

Bytes encode_lane(uint16_t lane) { return Writer().u16(lane).take(); }

std::optional<uint16_t> decode_lane(std::span<const std::byte> data) {
  Reader in(data);
  const uint16_t lane = in.u16();
  if (!in.finished()) return std::nullopt;
  return lane;
}

}  // namespace rondo::bootstrap
