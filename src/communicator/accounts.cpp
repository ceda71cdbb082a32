#include "communicator/accounts.hpp"

#include <fmt/format.h>

#include <functional>

namespace rondo {

using bootstrap::Account;
using bootstrap::CallKey;
using bootstrap::CallNote;
using bootstrap::Field;
using engine::Call;
using engine::Record;
using engine::Recorder;
using schedule::Operation;

namespace {

// An all_to_all_v is a collective, but how much two ranks exchange in it is known to these two alone.
constexpr uint64_t within_collective = 1ull << 63;

std::string name(auto value) { return std::string(name_of(value)); }

// Long lists are cut to what a report takes, and told apart by a hash.
std::string list(const std::vector<uint64_t>& firsts) {
  constexpr size_t longest = 120;
  std::string text;
  for (size_t i = 1; i < firsts.size(); i++)
    text += fmt::format("{}{}", i == 1 ? "" : " ", firsts[i] - firsts[i - 1]);
  if (text.size() <= longest) return text;
  return fmt::format("{}... (hash {:x})", text.substr(0, longest), std::hash<std::string>()(text));
}

CallNote note_of(const Call& call) {
  CallNote note{describe(call), {{"operation", name_of_operation(call)}}};
  note.fields.push_back({"tag", std::to_string(call.tag)});
  if (call.operation == Operation::barrier) return note;
  const Field algorithm{"algorithm", name(*call.algorithm)};
  if (call.part_of != engine::PartOf::nothing) return note.fields.push_back(algorithm), note;
  note.fields.push_back({"type", name(call.type)});
  if (schedule::reduces(call.operation)) note.fields.push_back({"reduction", name(call.reduction)});
  const bool exchanges = call.operation == Operation::all_to_all && call.parts;
  if (!exchanges) note.fields.push_back({"count", std::to_string(call.count)});
  if (schedule::is_rooted(call.operation)) note.fields.push_back({"root", std::to_string(call.root)});
  if (call.parts && !exchanges) note.fields.push_back({"counts", list(call.parts->input)});
  if (call.vectors > 0) {
    note.fields.push_back({"vectors of the group", std::to_string(call.vectors)});
    note.fields.push_back({"hash of their counts", fmt::format("{:x}", call.layout)});
  }
  if (schedule::reduces(call.operation))
    note.fields.push_back({"reproducible", call.reproducible ? "yes" : "no"});
  note.fields.push_back(algorithm);
  return note;
}

// One direction between two ranks.
CallNote note_of(const Call& call, bool sends, Rank other) {
  const bool one = call.operation == Operation::send_recv;
  const auto& firsts = sends ? call.parts->input : call.parts->output;
  const size_t part = one ? 0 : other;
  const uint64_t count = firsts[part + 1] - firsts[part];
  return {fmt::format("{} of {} {} {} rank {}", one ? (sends ? "send" : "receive") : "all_to_all_v", count,
                      name_of(call.type), sends ? "to" : "from", other),
          {{"type", name(call.type)}, {"count", std::to_string(count)}, {"tag", std::to_string(call.tag)}}};
}

std::optional<CallNote> note_of(const Record& record, Rank rank, const CallKey& key) {
  if (key.space == 0) {
    if (record.collective != key.number) return std::nullopt;
    return note_of(record.call);
  }
  const Rank from = bootstrap::sender_of(key), to = bootstrap::receiver_of(key);
  if ((rank != from && rank != to) || !record.call.parts) return std::nullopt;
  const bool sends = rank == from;
  const Rank other = sends ? to : from;
  if (key.number & within_collective) {
    if ((record.collective | within_collective) != key.number ||
        record.call.operation != Operation::all_to_all)
      return std::nullopt;
  } else if ((sends ? record.call.to : record.call.from) != other ||
             (sends ? record.sent : record.received) != key.number) {
    return std::nullopt;
  }
  return note_of(record.call, sends, other);
}

// Whether the rank has got as far as `key` in what this record is one of.
bool has_passed(const Record& record, Rank rank, const CallKey& key) {
  if (key.space == 0) return record.collective >= key.number;
  if (key.number & within_collective) return (record.collective | within_collective) >= key.number;
  if (rank == bootstrap::sender_of(key))
    return record.call.to == bootstrap::receiver_of(key) && record.sent >= key.number;
  return record.call.from == bootstrap::sender_of(key) && record.received >= key.number;
}

uint32_t milliseconds_since(TimePoint time) {
  return uint32_t(std::chrono::duration_cast<milliseconds>(Clock::now() - time).count());
}

}  // namespace

CallKey key_of(const Record& record, Rank rank, std::optional<Rank> peer) {
  const Call& call = record.call;
  if (call.operation != Operation::send_recv) return {0, record.collective};
  if (call.from != schedule::nobody && (!peer || *peer == call.from))
    return {bootstrap::pair_space(call.from, rank), record.received};
  return {bootstrap::pair_space(rank, call.to), record.sent};
}

std::optional<CallKey> key_within(const Record& record, Rank rank, Rank peer) {
  if (record.call.operation == Operation::send_recv || !engine::is_pairwise(record.call)) return std::nullopt;
  return CallKey{bootstrap::pair_space(peer, rank), record.collective | within_collective};
}

Account account_of(const Recorder& recorder, Rank rank, const CallKey& key) {
  Account account;
  const uint64_t last = recorder.last();
  for (uint64_t s = last; s > 0 && s + Recorder::capacity > last; s--) {
    const auto record = recorder.at(s);
    if (!record) continue;
    if (s == last) {
      account.running = record->outcome == Record::Outcome::running;
      account.for_ms = milliseconds_since(account.running ? record->began : record->ended);
      account.last = fmt::format("operation #{} ({})", s, describe(record->call));
    }
    account.passed = account.passed || has_passed(*record, rank, key);
    if (!account.call) account.call = note_of(*record, rank, key);
    if (account.call) break;
  }
  return account;
}

}  // namespace rondo
