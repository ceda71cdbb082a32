#include "cli/verdict.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

namespace rondo::cli {
namespace {

constexpr milliseconds signal_overrules{30};

// abort() is how many programs react to an error.
bool is_cause(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) != SIGABRT && WTERMSIG(status) != SIGPIPE;
}

}  // namespace

std::string describe_end(int status) {
  if (WIFEXITED(status)) return fmt::format("exit {}", WEXITSTATUS(status));
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return fmt::format("signal {} ({})", WTERMSIG(status), name ? name : "?");
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

void Verdict::settle(int code, const std::string& reason) {
  if (settled_) return;
  settled_ = true;
  code_ = code;
  words_.clear();
  if (!reason.empty()) add(reason);
}

void Verdict::rank_failed(size_t rank, int status) {
  const auto now = Clock::now();
  const bool overrules = exit_named_at_ && now < *exit_named_at_ + signal_overrules && is_cause(status);
  if (overrules) settled_ = false;
  if (!settled_ && WIFEXITED(status)) exit_named_at_ = now;
  if (overrules) exit_named_at_.reset();
  settle(code_of(status), fmt::format("rank {} failed first: {}", rank, describe_end(status)));
}

std::string Survival::ended(size_t rank, int status, size_t left) {
  if (code_of(status) == 0) {
    well_ = true;
    return "";
  }
  last_ = Failure{rank, status};
  if (well_ && !counts_) counts_ = last_;
  return fmt::format("rank {} failed: {}{}", rank, describe_end(status),
                     left > 0 ? "; the others go on" : "");
}

void Survival::conclude(Verdict& verdict) const {
  if (counts_)
    verdict.settle(code_of(counts_->status), fmt::format("rank {} failed after others had ended: {}",
                                                         counts_->rank, describe_end(counts_->status)));
  else if (!well_ && last_)
    verdict.settle(code_of(last_->status), fmt::format("no rank is left; the last was rank {}: {}",
                                                       last_->rank, describe_end(last_->status)));
}

}  // namespace rondo::cli
