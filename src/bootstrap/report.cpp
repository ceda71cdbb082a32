#include "bootstrap/report.hpp"

#include <algorithm>

namespace rondo::bootstrap {
namespace {

void write(Writer& out, const CallKey& key) { out.u64(key.space).u64(key.number); }
CallKey read_key(Reader& in) {
  CallKey key;
  key.space = in.u64();
  key.number = in.u64();
  return key;
}

void write(Writer& out, const Account& account) {
  out.u8(account.call.has_value()).u8(account.passed).u8(account.running).u32(account.for_ms);
  out.text(account.last, longest_call_text);
  if (!account.call) return;
  out.text(account.call->text, longest_call_text);
  const size_t fields = std::min(account.call->fields.size(), most_fields);
  out.u8(uint8_t(fields));
  for (size_t i = 0; i < fields; ++i)
    out.text(account.call->fields[i].name, longest_name).text(account.call->fields[i].value, longest_value);
}

Account read_account(Reader& in) {
  Account account;
  const bool has_call = in.u8() != 0;
  account.passed = in.u8() != 0;
  account.running = in.u8() != 0;
  account.for_ms = in.u32();
  account.last = in.text(longest_call_text);
  if (!has_call) return account;
  CallNote& call = account.call.emplace();
  call.text = in.text(longest_call_text);
  const size_t fields = in.u8();
  if (fields > most_fields) in.fail();
  for (size_t i = 0; i < fields && in.ok(); ++i) {
    Field& field = call.fields.emplace_back();
    field.name = in.text(longest_name);
    field.value = in.text(longest_value);
  }
  return account;
}

}  // namespace

Bytes encode(const CallKey& key) {
  Writer out;
  write(out, key);
  return out.take();
}

std::optional<CallKey> decode_key(std::span<const std::byte> data) {
  Reader in(data);
  const CallKey key = read_key(in);
  if (!in.finished()) return std::nullopt;
  return key;
}

Bytes encode(const Report& report) {
  Writer out;
  out.u8(uint8_t(report.reason));
  write(out, report.key);
  write(out, report.account);
  return out.take();
}

std::optional<Report> decode_report(std::span<const std::byte> data) {
  Reader in(data);
  Report report;
  report.reason = Report::Reason(in.u8());
  report.key = read_key(in);
  report.account = read_account(in);
  if (!in.finished()) return std::nullopt;
  switch (report.reason) {
    case Report::Reason::asked:
    case Report::Reason::quiet:
    case Report::Reason::ends:
      return report;
  }
  return std::nullopt;
}

Bytes encode(const Summary& summary) {
  Writer out;
  write(out, summary.key);
  out.u8(summary.peer.has_value()).u32(summary.peer.value_or(0)).text(summary.text, longest_summary);
  return out.take();
}

std::optional<Summary> decode_summary(std::span<const std::byte> data) {
  Reader in(data);
  Summary summary;
  summary.key = read_key(in);
  const bool has_peer = in.u8() != 0;
  const Rank peer = in.u32();
  if (has_peer) summary.peer = peer;
  summary.text = in.text(longest_summary);
  if (!in.finished()) return std::nullopt;
  return summary;
}

}  // namespace rondo::bootstrap
