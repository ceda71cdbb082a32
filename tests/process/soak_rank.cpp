// A rank of the soak: random operations, each checked, on the job's communicator and on two made from it, until a rank
// dies or aborts; then the ranks that are left shrink and go on, until two are left. Its lines are for soak_job.cpp,
// with times on the monotonic clock in seconds and the ranks that the job began with:
//   joined AT
//   dies GENERATION AT                               as planned
//   aborts GENERATION AT
//   failed GENERATION AT BEGAN CODE PEER MESSAGE     BEGAN: when the generation did
//   shrunk GENERATION FROM TO RANK...
//   used GENERATION DESCRIPTORS THREADS MAPPINGS RESIDENT_KIB
//   wrong | hang | leak | lie WHAT                   it ends at once
//   done OPERATIONS
//
//   soak_rank SEED JOB inside|outside     outside: whoever started it kills
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <thread>

#include "random_sequence.hpp"
#include "tests/sanitized.hpp"
#include "tests/usage.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

// A sanitizer keeps freed memory back for a while, so resident memory says nothing there.
constexpr size_t few_mappings = 40, some_KiB = sanitized ? 1 << 20 : 24 << 10;
constexpr milliseconds shrink_time{10'000}, judge_time{4000};
constexpr int warm_up_rounds = 4, last_rounds = 20, most_rounds = 100'000;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class... Args>
void say(const char* format, const Args&... args) {
  const std::string line = fmt::format(fmt::runtime(format), args...) + "\n";
  (void)!::write(1, line.data(), line.size());
}

// Up to some MiB, now and then.
size_t any_count(Dice& dice, uint32_t world, size_t element_bytes) {
  if (!dice.one_in(40)) return small_count(dice, world, element_bytes);
  return dice.below(std::min<size_t>(400'000, (4u << 20) / element_bytes));
}

// What goes wrong in a generation, drawn alike by all of its ranks.
struct Plan {
  enum class Way : uint8_t { kill, kill_later, abort, abort_later };
  Plan(Dice dice, uint32_t world)
      : victim(Rank(dice.below(world))),
        operation(1 + dice.below(dice.one_in(3) ? 300 : 40)),
        way(Way(dice.below(4))),
        delay(dice.below(5000)) {
    if (world >= 4 && dice.one_in(3)) second = (victim + 1 + Rank(dice.below(world - 1))) % world;
    second_delay = microseconds(dice.below(30'000));
  }
  Rank victim;
  uint64_t operation;  // counted from the end of the warm-up
  Way way;
  microseconds delay, second_delay{};
  std::optional<Rank> second;  // dies while it shrinks
};

class SoakRank {
 public:
  SoakRank(Communicator joined, uint64_t seed, bool inside)
      : main_(std::move(joined)), seed_(seed), inside_(inside), first_world_(main_.world()) {
    for (Rank rank = 0; rank < main_.world(); rank++) originals_.push_back(rank);
  }

  int run() {
    for (;; generation_++) {
      begin();
      if (live()) return say("done {}", operations_), 0;
      if (!judge() || !shrink()) return 6;
    }
  }

 private:
  Dice dice(uint64_t of) const { return Dice((seed_ * 1000 + generation_) * 1'000'003 + of); }
  bool is_last() const { return main_.world() <= 2; }
  bool stop(const char* label, const std::string& what) {
    say("{} {} {}: {}", label, generation_, originals_[main_.rank()], what);
    ::_exit(5);
  }

  void begin() {
    began_ = now();
    plan_ = Plan(dice(0), main_.world());
    planned_ = inside_ && !is_last();
    started_ = round_ = 0;
    warm_ = false;
    verdict_.reset();
    of_parts_.reset();
    made_no_part_ = false;
  }

  // All operations of the last generation, or those until something fails: then false.
  bool live() {
    if (!make_parts()) return false;
    for (int i = 0; i < warm_up_rounds; i++)
      if (!round()) return false;
    parts_.clear();
    if (!meet_all()) return false;
    look_at_usage();
    if (!make_parts()) return false;
    warm_ = true;
    for (int i = 0; i < (is_last() ? last_rounds : most_rounds); i++)
      if (!round()) return false;
    if (!is_last()) return stop("lie", "nothing has failed");
    if (auto done = main_.barrier(); !done) return note(main_, done.error()), false;
    return true;
  }

  bool make_parts() {
    auto twin = main_.duplicate();
    if (!twin) return note_of_parts(twin.error());
    parts_.push_back(std::move(*twin));
    auto half = main_.split(main_.rank() % 2);
    if (!half) return note_of_parts(half.error());
    parts_.push_back(std::move(**half));
    return true;
  }

  // Connections are made when they are first needed: now all of them are there.
  bool meet_all() {
    const std::vector<int32_t> given(main_.world(), 1);
    std::vector<int32_t> got(main_.world());
    if (auto done = main_.all_to_all(std::span(given), std::span(got)); !done)
      return note(main_, done.error()), false;
    return got == given || stop("wrong", "all_to_all");
  }

  bool round() {
    std::vector<Communicator*> comms{&main_};
    for (Communicator& part : parts_) comms.push_back(&part);
    Hooks hooks;
    hooks.before = [this](uint64_t) {
      if (!warm_ || ++started_ != plan_.operation || !planned_ || main_.rank() != plan_.victim) return;
      misbehave();
    };
    hooks.failed = [this](const Communicator& comm, const Error& error) { note(comm, error); };
    const Outcome outcome = run_sequence(comms, dice(++round_).below(UINT64_MAX), any_count, hooks);
    operations_ += outcome.operations;
    if (outcome.wrong > 0) return stop("wrong", fmt::format("{}: {} elements", outcome.what, outcome.wrong));
    return outcome.right();
  }

  void die() {
    say("dies {} {:.6f}", generation_, now());
    ::kill(::getpid(), SIGKILL);
  }
  void abort() {
    say("aborts {} {:.6f}", generation_, now());
    main_.abort();
  }
  void misbehave() {
    switch (plan_.way) {
      case Plan::Way::kill:
        return die();
      case Plan::Way::abort:
        return abort();
      case Plan::Way::kill_later:
        return std::thread([this, delay = plan_.delay] {
                 std::this_thread::sleep_for(delay);
                 die();
               })
            .detach();
      case Plan::Way::abort_later:
        aborting_ = std::thread([this, delay = plan_.delay] {
          std::this_thread::sleep_for(delay);
          abort();
        });
    }
  }

  // ---- After a failure.

  // What is made from the job's communicator fails with it, but the ranks of a part must not wait for one that
  // has already seen the failure elsewhere: so it gives its parts up.
  void note(const Communicator& comm, const Error& error) {
    if (error.code == ErrorCode::timeout) stop("hang", error.message);
    for (Communicator& part : parts_) part.abort();
    if (&comm != &main_) {
      if (!of_parts_) of_parts_ = error;
      return;
    }
    if (!verdict_ || (verdict_->code == ErrorCode::aborted && error.code != ErrorCode::aborted))
      verdict_ = error;
  }
  bool note_of_parts(const Error& error) {
    if (error.code == ErrorCode::timeout) stop("hang", "making a part: " + error.message);
    of_parts_ = error;
    made_no_part_ = true;
    return false;
  }

  // What the job's communicator says: an exchange with oneself asks it, and disturbs nobody.
  bool judge() {
    for (Communicator& part : parts_) part.abort();
    parts_.clear();
    const double deadline = now() + std::chrono::duration<double>(judge_time).count();
    while (!verdict_ && now() < deadline) {
      const int32_t given = 7;
      int32_t got = 0;
      const auto done =
          main_.send_recv(&given, 1, main_.rank(), &got, 1, main_.rank(), data_type_of<int32_t>);
      if (!done) note(main_, done.error());
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (aborting_.joinable()) aborting_.join();
    // A communicator tells its first error once.
    if (verdict_ && verdict_->code == ErrorCode::aborted && made_no_part_) verdict_ = of_parts_;
    if (!verdict_)
      return stop("lie", "a part has failed, the communicator that it was made from has not: " +
                             (of_parts_ ? of_parts_->message : ""));
    say("failed {} {:.6f} {:.6f} {} {} {}", generation_, now(), began_, name_of(verdict_->code),
        verdict_->peer ? int(originals_[*verdict_->peer]) : -1, verdict_->message);
    return true;
  }

  bool shrink() {
    if (planned_ && plan_.second == main_.rank())
      std::thread([this, delay = plan_.second_delay] {
        std::this_thread::sleep_for(delay);
        die();
      }).detach();
    const double from = now();
    auto made = main_.shrink({shrink_time});
    if (!made) return stop(made.error().code == ErrorCode::timeout ? "hang" : "lie", made.error().message);
    std::vector<Rank> members;
    for (const Rank parent : made->parent_ranks()) members.push_back(originals_[parent]);
    say("shrunk {} {:.6f} {:.6f} {}", generation_, from, now(), fmt::join(members, " "));
    main_ = std::move(*made);
    originals_ = members;
    return true;
  }

  // ---- What it holds, while it has but one communicator: no more than in the first generation, but for the doors
  // of those that have a successor, and of attempts that were given up because a rank died.
  bool fits(const Usage& usage) const {
    const size_t doors = generation_ + 2 * (first_world_ - main_.world());
    const size_t control = main_.rank() == 0 ? main_.world() : 0;  // it was not rank 0 before, maybe
    return usage.descriptors <= first_->descriptors + doors + control && usage.threads <= first_->threads &&
           usage.mappings <= first_->mappings + few_mappings &&
           usage.resident_KiB <= first_->resident_KiB + some_KiB;
  }
  void look_at_usage() {
    ::malloc_trim(0);
    Usage usage;
    if (!first_) first_ = usage;
    // Another rank may be at the door just now; a thread that has been joined is in /proc for a moment more.
    for (int i = 0; i < 500 && !fits(usage); i++) {
      std::this_thread::sleep_for(milliseconds(2));
      usage = Usage();
    }
    say("used {} {} {} {} {}", generation_, usage.descriptors, usage.threads, usage.mappings,
        usage.resident_KiB);
    if (!fits(usage))
      stop("leak",
           fmt::format("{} {} {} {} at first {} {} {} {}\n{}\nat first\n{}", usage.descriptors, usage.threads,
                       usage.mappings, usage.resident_KiB, first_->descriptors, first_->threads,
                       first_->mappings, first_->resident_KiB, usage.open, first_->open));
  }

  Communicator main_;
  std::deque<Communicator> parts_;
  std::vector<Rank> originals_;  // by rank of main_
  const uint64_t seed_;
  const bool inside_;
  const uint32_t first_world_;
  uint64_t generation_ = 0, round_ = 0, started_ = 0, operations_ = 0;
  bool planned_ = false, warm_ = false;
  double began_ = 0;
  Plan plan_{Dice(0), 2};
  std::optional<Error> verdict_, of_parts_;  // of main_, and the first of a part or of making one
  bool made_no_part_ = false;                // the latter: it may be main_'s
  std::optional<Usage> first_;
  std::thread aborting_;
};

}  // namespace

int main(int, char** arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Large blocks go back to the system at once, so that resident memory says what is held.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 17);
  ::mallopt(M_ARENA_MAX, 1);
  const uint64_t seed = std::strtoull(arguments[1], nullptr, 10),
                 job = std::strtoull(arguments[2], nullptr, 10);
  auto joined = Communicator::from_environment();
  if (!joined) return say("lie 0 not joined: {}", joined.error().message), 4;
  say("joined {:.6f}", now());
  return SoakRank(std::move(*joined), seed * 10'000 + job, std::string(arguments[3]) == "inside").run();
}
