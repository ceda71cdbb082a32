// The bodies of control messages, from proven peers.
#include "bootstrap/inquiry.hpp"
#include "bootstrap/report.hpp"
#include "bootstrap/socket.hpp"
#include "bootstrap/wire.hpp"
#include "input.hpp"

using namespace rondo;
using namespace rondo::bootstrap;
using fuzz::require;
using fuzz::round_trip;

namespace {

using Body = std::span<const std::byte>;

void check_limits(Body body) {
  if (const auto join = decode_join(body))
    require(join->person.host.size() <= longest_host && is_tcp(from_wire(join->listener, 0)),
            "host and listener of a Join");
  if (const auto welcome = decode_welcome(body)) {
    require(welcome->policy.algorithm.size() <= longest_algorithm, "algorithm of a Welcome");
    require(welcome->policy.table.size() <= longest_table, "table of a Welcome");
    require(welcome->persons.size() == welcome->listeners.size(), "a Welcome has both for every rank");
    for (const Person& person : welcome->persons)
      require(person.host.size() <= longest_host, "host of a Welcome");
  }
  if (const auto shared = decode_shared(body))
    require(shared->why.size() <= longest_text, "text of a Shared");
  if (const auto groups = decode_groups(body)) {
    require(groups->why.size() <= longest_text, "text of a Groups");
    require(groups->group.size() * 4 <= body.size(), "no more groups than bytes");
  }
  if (const auto note = decode_regroup(body)) {
    require(note->root.size() <= longest_text, "root of a RegroupNote");
    require(note->ranks.size() * 4 <= body.size(), "no more ranks than bytes");
  }
  if (const auto failure = decode_failure(body))
    require(failure->text.size() <= longest_text, "text of a Failure");
  if (const auto summary = decode_summary(body))
    require(summary->text.size() <= longest_summary, "text of a Summary");
}

// What rank 0 concludes from whatever the others say.
void check_inquiry(Body body) {
  const auto report = decode_report(body);
  if (!report) return;
  if (const auto& call = report->account.call) {
    require(call->text.size() <= longest_call_text && call->fields.size() <= most_fields, "size of a Report");
    for (const Field& field : call->fields)
      require(field.name.size() <= longest_name && field.value.size() <= longest_value, "size of a Field");
  }
  Inquiry inquiry(report->key, 3);
  inquiry.add(0, {CallNote{"barrier", {{"operation", "barrier"}}}, true, "", false, 0});
  inquiry.add(1, report->account);
  inquiry.gone(2);
  require(inquiry.complete(), "nobody is left to answer");
  if (const auto disagreement = inquiry.disagreement())
    for (Rank rank = 0; rank < 3; ++rank) require(disagreement->blamed_by(rank) < 3, "a rank is blamed");
  const Summary summary = inquiry.summary({0, 0, 0});
  require(!summary.peer || *summary.peer < 3, "a rank is waited for");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Body body(reinterpret_cast<const std::byte*>(data), size);
  round_trip(body, decode_join, "Join comes back");
  round_trip(body, decode_welcome, "Welcome comes back");
  round_trip(body, decode_shared, "Shared comes back");
  round_trip(body, decode_groups, "Groups comes back");
  round_trip(body, decode_regroup, "RegroupNote comes back");
  round_trip(body, decode_failure, "Failure comes back");
  round_trip(body, decode_key, "CallKey comes back");
  round_trip(body, decode_report, "Report comes back");
  round_trip(body, decode_summary, "Summary comes back");
  if (const auto lane = decode_lane(body))
    require(decode_lane(encode_lane(*lane)) == lane, "lane comes back");
  if (const auto rank = decode_rank(body))
    require(decode_rank(encode_rank(*rank)) == rank, "rank comes back");
  check_limits(body);
  check_inquiry(body);
  return 0;
}
