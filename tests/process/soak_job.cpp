#include "soak_job.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "random_model.hpp"
#include "workers.hpp"

namespace rondo::test {
namespace {

constexpr uint32_t world = 8, killed_from_outside = world - 2;
constexpr double job_limit_s = 90;
// What the documentation promises, and slack for eight ranks on few cores.
constexpr double error_limit_s = 2 + 1, shrink_limit_s = 2 + 1;
constexpr double gone_limit_s = 2;

void sleep_ms(uint64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

struct Line {
  std::string label;
  int generation = 0;
  std::istringstream rest;
};

std::vector<Line> lines_of(const Ended& ended) {
  std::vector<Line> all;
  for (const std::string& text : lines(ended.out)) {
    Line line;
    line.rest.str(text);
    line.rest >> line.label;
    if (line.label != "joined" && line.label != "done") line.rest >> line.generation;
    all.push_back(std::move(line));
  }
  return all;
}

class Judge {
 public:
  Judge(const SoakJob& job, SoakCounts& counts) : job_(job), counts_(counts), dice_(job.seed + job.number) {}

  void run() {
    const bool inside = dice_.one_in(2);
    Workers ranks({world,
                   job_.transport,
                   {std::to_string(job_.seed), std::to_string(job_.number), inside ? "inside" : "outside"},
                   {"RONDO_TIMEOUT=20", "RONDO_INIT_TIMEOUT=20"},
                   {},
                   {},
                   SOAK_RANK_EXE});
    if (!ranks.all_say("joined", 30)) complain(counts_.hangs, "not all joined");
    if (!inside) kill_some(ranks);
    wait(ranks);
    for (Rank rank = 0; rank < world; rank++)
      if (ranks[rank].seconds_until_gone(gone_limit_s) < 0)
        complain(counts_.leaks, fmt::format("rank {} has left processes", rank));
    for (Rank rank = 0; rank < world; rank++) read(rank);
    for (Rank rank = 0; rank < world; rank++) judge(rank);
    judge_shrinks();
    counts_.jobs++;
    counts_.kills += deaths_.size();
    counts_.aborts += aborts_.size();
    counts_.shrinks += shrinks_.size();
  }

 private:
  void complain(uint64_t& count, const std::string& what) {
    count++;
    fmt::print("seed {} job {} over {}: {}\n", job_.seed, job_.number, job_.transport, what);
    std::fflush(stdout);
  }

  // At random times; one that is only stopped for a moment is not lost.
  void kill_some(Workers& ranks) {
    std::vector<Rank> alive;
    for (Rank rank = 0; rank < world; rank++) alive.push_back(rank);
    for (uint32_t i = 0; i < killed_from_outside; i++) {
      sleep_ms(dice_.one_in(3) ? dice_.below(60) : 100 + dice_.below(900));
      if (dice_.one_in(2)) {
        const pid_t slow = ranks[alive[dice_.below(alive.size())]].pid();
        ::kill(slow, SIGSTOP);
        sleep_ms(dice_.below(200));
        ::kill(slow, SIGCONT);
      }
      const size_t at = dice_.below(alive.size());
      deaths_[alive[at]] = seconds_now();
      ::kill(ranks[alive[at]].pid(), SIGKILL);
      alive.erase(alive.begin() + ptrdiff_t(at));
    }
  }

  void wait(Workers& ranks) {
    const double deadline = seconds_now() + job_limit_s;
    std::vector<Rank> late;
    for (Rank rank = 0; rank < world; rank++)
      if (!ranks[rank].ended_within(deadline - seconds_now())) late.push_back(rank);
    for (const Rank rank : late) {
      const auto state = test::run({RONDO_EXE, "doctor", "--pid", std::to_string(ranks[rank].pid())});
      complain(counts_.hangs, fmt::format("rank {} has not ended:\n{}{}", rank, state.out, state.err));
    }
    for (Rank rank = 0; rank < world; rank++) {
      if (std::ranges::find(late, rank) != late.end()) ::kill(ranks[rank].pid(), SIGKILL);
      ended_.push_back(ranks[rank].wait(1e9));
    }
  }

  // What happened, of which the others must know.
  void read(Rank rank) {
    for (Line& line : lines_of(ended_[rank])) {
      double at = 0;
      if (line.label == "dies" && line.rest >> at) deaths_.try_emplace(rank, at);
      if (line.label == "aborts" && line.rest >> at) aborts_[line.generation] = {rank, at};
    }
  }

  void judge(Rank rank) {
    const Ended& ended = ended_[rank];
    const bool dead = deaths_.contains(rank);
    if (ended.code != (dead ? 128 + SIGKILL : 0))
      complain(count_of_last_word(ended), fmt::format("rank {} ended with {}; its last words:\n{}{}", rank,
                                                      ended.code, last_words(ended), ended.err));
    for (Line& line : lines_of(ended)) {
      if (line.label == "failed") judge_failure(rank, line);
      if (line.label == "shrunk") note_shrink(rank, line);
      if (uint64_t operations = 0; line.label == "done" && line.rest >> operations)
        counts_.operations += operations;
    }
  }

  uint64_t& count_of_last_word(const Ended& ended) {
    for (const Line& line : lines_of(ended)) {
      if (line.label == "wrong") return counts_.wrong;
      if (line.label == "hang") return counts_.hangs;
      if (line.label == "leak") return counts_.leaks;
    }
    return counts_.lies;
  }
  static std::string last_words(const Ended& ended) {
    return ended.out.substr(ended.out.size() - std::min<size_t>(ended.out.size(), 2000));
  }

  void judge_failure(Rank rank, Line& line) {
    double at = 0, began = 0;
    std::string code, text;
    int peer = -1;
    line.rest >> at >> began >> code >> peer;
    std::getline(line.rest, text);
    const auto wrong = [&](const std::string& why) {
      complain(counts_.lies, fmt::format("rank {}, generation {}: {}: {} {}{}", rank, line.generation, why,
                                         code, peer, text));
    };
    double cause = 0;
    if (const auto abort = aborts_.find(line.generation); code == "aborted" && abort != aborts_.end()) {
      if (abort->second.rank != rank && peer != int(abort->second.rank)) wrong("another rank aborted");
      cause = abort->second.at;
    } else {
      const auto death = deaths_.find(Rank(peer));
      if (code != "peer_lost" || peer < 0 || death == deaths_.end() || at < death->second)
        return wrong("no rank has died of which it could be told so");
      cause = death->second;
    }
    // A rank may have died before the generation began.
    const double took = at - std::max(cause, began);
    counts_.slowest_error_s = std::max(counts_.slowest_error_s, took);
    if (took > error_limit_s) wrong(fmt::format("told after {:.2f} s", took));
  }

  struct Shrink {
    double last_call = 0, last_end = 0;
    std::vector<Rank> members;
    std::set<Rank> ended;
  };
  void note_shrink(Rank rank, Line& line) {
    double from = 0, to = 0;
    line.rest >> from >> to;
    std::vector<Rank> members;
    for (Rank member = 0; line.rest >> member;) members.push_back(member);
    Shrink& shrink = shrinks_[line.generation];
    shrink.last_call = std::max(shrink.last_call, from);
    shrink.last_end = std::max(shrink.last_end, to);
    if (shrink.ended.empty()) shrink.members = members;
    shrink.ended.insert(rank);
    if (shrink.members != members)
      complain(counts_.lies, fmt::format("the ranks disagree on who is left: {} or {}",
                                         fmt::join(shrink.members, " "), fmt::join(members, " ")));
  }

  // Every rank that lives is a member, and it takes no longer than promised after the last had called it and the
  // last had died.
  void judge_shrinks() {
    for (const auto& [generation, shrink] : shrinks_) {
      double since = shrink.last_call;
      for (Rank rank = 0; rank < world; rank++) {
        const auto death = deaths_.find(rank);
        if (death == deaths_.end() && !shrink.ended.contains(rank) && ended_[rank].code == 0)
          complain(counts_.lies, fmt::format("rank {} lives and was left out", rank));
        if (death != deaths_.end() && death->second < shrink.last_end) since = std::max(since, death->second);
      }
      const double took = shrink.last_end - since;
      counts_.slowest_shrink_s = std::max(counts_.slowest_shrink_s, took);
      if (took > shrink_limit_s)
        complain(counts_.lies, fmt::format("shrink of generation {} took {:.2f} s", generation, took));
    }
  }

  struct Abort {
    Rank rank;
    double at;
  };
  const SoakJob job_;
  SoakCounts& counts_;
  Dice dice_;
  std::vector<Ended> ended_;
  std::map<Rank, double> deaths_;
  std::map<int, Abort> aborts_;    // by generation
  std::map<int, Shrink> shrinks_;  // likewise
};

}  // namespace

void run_soak_job(const SoakJob& job, SoakCounts& counts) { Judge(job, counts).run(); }

}  // namespace rondo::test
