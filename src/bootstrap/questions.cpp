// The part of Membership that finds out why ranks make no progress. One that does not reports the call to rank
// 0, which asks all others and draws the conclusion (inquiry.hpp):
//
//   rank 2    report(quiet | ends) ->  rank 0  ask -> 1, 3, ...
//   1, 3 ...  report(asked)        ->  rank 0  failed(mismatch) -> everyone  |  summary -> whose call ends
#include <fmt/format.h>

#include "bootstrap/membership.hpp"

namespace rondo::bootstrap {

struct Membership::Question {
  Question(asio::io_context& context, const CallKey& key, uint32_t world)
      : inquiry(key, world), timer(context) {}
  Inquiry inquiry;
  std::set<Rank> waiting;  // for the summary
  asio::steady_timer timer;
  bool asked_again = false;
};

void Membership::report(Report::Reason reason, const CallKey& key) noexcept {
  unless_without_memory([&] {
    asio::post(context_, [self = shared_from_this(), reason, key] { self->send_report(reason, key); });
  });
}

// ---- All on the service thread.

Account Membership::account(const CallKey& key) {
  Account own;
  tell([&](Handler& handler) { own = handler.account(key); });
  return own;
}

void Membership::send_report(Report::Reason reason, const CallKey& key) {
  if (closed_ || failed_ || !star_) return;
  const Report report{reason, key, account(key)};
  if (rank_ == 0) return reported(0, report);
  if (left_.contains(0)) {
    if (reason == Report::Reason::ends)
      summarise({key, {}, "rank 0 has left, and with it who could ask the others"});
    return;
  }
  star_->send({Kind::report, rank_, 0, encode(report)});
}

// Rank 0.
void Membership::reported(Rank from, const Report& report) {
  if (rank_ != 0 || failed_) return;
  auto found = questions_.find(report.key);
  if (found == questions_.end()) {
    if (report.reason == Report::Reason::asked) return;  // too late
    ask(report.key);
    found = questions_.find(report.key);
  }
  const auto question = found->second;
  question->inquiry.add(from, report.account);
  if (report.reason == Report::Reason::ends) question->waiting.insert(from);
  const Inquiry& inquiry = question->inquiry;
  if (inquiry.complete() && (inquiry.behind().empty() || !inquiry.disagreement())) conclude(report.key);
}

void Membership::ask(const CallKey& key) {
  const auto question = std::make_shared<Question>(context_, key, world_);
  questions_.emplace(key, question);
  for (const Rank rank : left_) question->inquiry.gone(rank);
  question->inquiry.add(0, account(key));
  star_->send({Kind::ask, 0, everyone, encode(key)});
  await_answers(key, *question);
}

void Membership::await_answers(const CallKey& key, Question& question) {
  question.timer.expires_after(answer_patience);
  question.timer.async_wait([weak = weak_from_this(), key](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->closed_) self->out_of_patience(key);
  });
}

// Two ranks that differ do not tell which of them is the odd one, so those that have not called yet get a
// moment to do it.
void Membership::out_of_patience(const CallKey& key) {
  const auto found = questions_.find(key);
  if (found == questions_.end()) return;
  const auto question = found->second;
  if (question->asked_again || !question->inquiry.disagreement()) return conclude(key);
  question->asked_again = true;
  for (const Rank rank : question->inquiry.behind()) {
    if (rank == 0)
      question->inquiry.add(0, account(key));
    else
      star_->send({Kind::ask, 0, rank, encode(key)});
  }
  if (question->inquiry.behind().empty()) return conclude(key);
  await_answers(key, *question);
}

void Membership::conclude(const CallKey& key) {
  const auto found = questions_.find(key);
  if (found == questions_.end()) return;
  const auto question = found->second;
  questions_.erase(found);
  if (failed_) return;
  if (const auto disagreement = question->inquiry.disagreement()) return disagree(*disagreement);
  if (question->waiting.empty()) return;
  const Summary summary = question->inquiry.summary(star_->silence_ms());
  for (const Rank rank : question->waiting) {
    if (rank == 0)
      summarise(summary);
    else
      star_->send({Kind::summary, 0, rank, encode(summary)});
  }
}

// Every rank blames another side than its own.
void Membership::disagree(const Inquiry::Disagreement& disagreement) {
  for (Rank rank = 0; rank < world_; ++rank) {
    const Error error{ErrorCode::mismatch, disagreement.text, disagreement.blamed_by(rank)};
    Message message = finding_message(0, error);
    message.to = rank;
    if (rank != 0) star_->send(message);
  }
  failed(0, {ErrorCode::mismatch, disagreement.blamed_by(0), disagreement.text, true});
}

void Membership::summarise(const Summary& summary) {
  tell([&](Handler& handler) { handler.summarised(summary); });
}

}  // namespace rondo::bootstrap
