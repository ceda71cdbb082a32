#include "bootstrap/inquiry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bootstrap/person.hpp"

namespace rondo::bootstrap {
namespace {

// Of many ranks only so many are described one by one.
constexpr size_t most_described = 4;

std::string ranks_of(const std::vector<Rank>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == 16) return text + fmt::format(" and {} more", ranks.size() - i);
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  return text;
}

// What the call says there, "none" where it has no such field.
std::string value_of(const CallNote& call, const std::string& name) {
  const auto field = std::ranges::find(call.fields, name, &Field::name);
  return field == call.fields.end() ? "none" : field->value;
}

// "type: f32 against f64", of the first field that differs, in the order of the call that has more of them.
std::string difference(const CallNote& a, const CallNote& b) {
  const bool more = b.fields.size() > a.fields.size();
  for (const CallNote* call : {more ? &b : &a, more ? &a : &b})
    for (const Field& field : call->fields) {
      const std::string left = value_of(a, field.name), right = value_of(b, field.name);
      if (left != right) return fmt::format("{}: {} against {}", field.name, left, right);
    }
  return "nothing";
}

std::string what_it_did(const Account& account) {
  if (account.last.empty()) return "it has called nothing yet";
  return fmt::format("its last is {}, {}", account.last,
                     account.running ? fmt::format("under way for {}", in_seconds(account.for_ms))
                                     : fmt::format("over since {}", in_seconds(account.for_ms)));
}

}  // namespace

Inquiry::Inquiry(const CallKey& key, uint32_t world) : key_(key), ranks_(world) {}

void Inquiry::add(Rank rank, Account account) { ranks_[rank].account = std::move(account); }

bool Inquiry::takes_part(Rank rank) const {
  return key_.space == 0 || rank == sender_of(key_) || rank == receiver_of(key_);
}

bool Inquiry::complete() const {
  for (Rank rank = 0; rank < ranks_.size(); ++rank)
    if (takes_part(rank) && !ranks_[rank].gone && !ranks_[rank].account) return false;
  return true;
}

std::string Inquiry::name() const {
  if (key_.space == 0) return fmt::format("collective #{}", key_.number);
  return fmt::format("what rank {} sends to rank {}", sender_of(key_), receiver_of(key_));
}

Rank Inquiry::Disagreement::blamed_by(Rank rank) const {
  const bool tie = sides[0].size() == sides[1].size();
  const bool own = std::find(sides[0].begin(), sides[0].end(), rank) != sides[0].end();
  return tie && !own ? sides[0][0] : sides[1][0];
}

std::vector<Rank> Inquiry::behind() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < ranks_.size(); ++rank)
    if (const auto& account = ranks_[rank].account; takes_part(rank) && account && !account->passed)
      ranks.push_back(rank);
  return ranks;
}

std::optional<Inquiry::Disagreement> Inquiry::disagreement() const {
  std::vector<std::vector<Rank>> sides;
  const auto call = [&](Rank rank) -> const CallNote& { return *ranks_[rank].account->call; };
  for (Rank rank = 0; rank < ranks_.size(); ++rank) {
    if (!takes_part(rank) || !ranks_[rank].account || !ranks_[rank].account->call) continue;
    const auto side = std::find_if(sides.begin(), sides.end(), [&](const std::vector<Rank>& others) {
      return call(others[0]).fields == call(rank).fields;
    });
    if (side == sides.end())
      sides.push_back({rank});
    else
      side->push_back(rank);
  }
  if (sides.size() < 2) return std::nullopt;
  std::stable_sort(sides.begin(), sides.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::string text = fmt::format("the ranks disagree about {}: ", name());
  // The odd ones first, as it is they who are to be looked at.
  const bool tie = sides[0].size() == sides[1].size();
  std::vector<std::vector<Rank>> told(sides.begin() + (tie ? 0 : 1), sides.end());
  if (!tie) told.push_back(sides[0]);
  for (size_t i = 0; i < told.size(); ++i)
    text += fmt::format("{}{} called {}", i == 0 ? "" : ", ", ranks_of(told[i]), call(told[i][0]).text);
  text += fmt::format(" ({}). Every rank must make the same calls in the same order with the same arguments",
                      difference(call(told[0][0]), call(told[1][0])));
  return Disagreement{std::move(text), std::move(sides)};
}

Summary Inquiry::summary(const std::vector<uint64_t>& silence_ms) const {
  Summary summary{key_, {}, {}};
  size_t described = 0, more = 0;
  const auto blame = [&](Rank rank, const std::string& why) {
    if (!summary.peer) summary.peer = rank;
    if (described < most_described)
      summary.text += fmt::format("{}rank {} {}", described++ == 0 ? "" : "; ", rank, why);
    else
      more++;
  };
  for (Rank rank = 0; rank < ranks_.size(); ++rank)
    if (takes_part(rank) && !ranks_[rank].gone && !ranks_[rank].account)
      blame(rank, fmt::format("has not answered for {}", in_seconds(silence_ms[rank])));
  for (Rank rank = 0; rank < ranks_.size(); ++rank)
    if (takes_part(rank) && ranks_[rank].gone && !ranks_[rank].account) blame(rank, "has left");
  for (const Rank rank : behind()) blame(rank, "has not called it: " + what_it_did(*ranks_[rank].account));
  if (more > 0) summary.text += fmt::format("; and {} more ranks", more);
  if (!summary.peer) summary.text = "every rank has called it";
  return summary;
}

}  // namespace rondo::bootstrap
