// What the ranks of a failed job say to one that regroups: those that have come to its door, and those at whose doors it
// asks. Rank 1 or 2 of four regroups; the input plays the others, as badly as it likes.
#include "bootstrap/regroup.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "base/root_address.hpp"
#include "bootstrap/door.hpp"
#include "descriptors.hpp"

using namespace rondo;
using namespace rondo::bootstrap;
using fuzz::require;

namespace {

constexpr Rank world = 4;
constexpr uint64_t epoch = 7;
const Credentials credentials{"the secret of this job"};

Address door_of(Rank rank) { return unix_address(fmt::format("rondo-fuzz-{}-{}", ::getpid(), rank)); }

class Game {
 public:
  explicit Game(fuzz::Input& input) : input_(input), rank_(1 + (input.value<uint8_t>() & 1)) {
    const auto listening = input.value<uint8_t>();
    Regroup::Setup setup{context_, credentials, epoch, rank_, std::vector<Person>(world), {}, {}};
    for (Rank rank = 0; rank < world; ++rank) {
      setup.doors.push_back(door_of(rank));
      if (rank != rank_ && (listening >> rank & 1)) open_door(rank);
    }
    setup.meet = [] { return Meeting{"unix:@a place to meet", 5, nullptr, nullptr}; };
    regroup_ = std::make_shared<Regroup>(std::move(setup));
  }
  ~Game() {
    regroup_->close();
    for (const auto& door : doors_) door->close();
    pump();
  }

  void play() {
    for (int i = 0; i < 40 && !input_.empty() && !over_; ++i) {
      const auto what = input_.value<uint8_t>();
      switch (what & 7) {
        case 0:
          call(what >> 3);
          break;
        case 1:
          come(what >> 3);
          break;
        case 2:
          close(what >> 3);
          break;
        default:
          say(what >> 3);
      }
      pump();
    }
  }

 private:
  void pump() {
    do context_.restart();
    while (context_.poll() > 0);
  }

  void open_door(Rank rank) {
    auto listener = listen_on(door_of(rank));
    require(listener.ok(), "a listener");
    std::vector<Descriptor> listeners;
    listeners.push_back(std::move(*listener));
    doors_.push_back(std::make_shared<Door>(context_, credentials, Purpose::data, Limits{}, rank));
    const auto entered = [this, rank](const Claim&, Socket socket) {
      peers_.push_back({rank, std::move(release(std::move(socket)).descriptor)});
    };
    doors_.back()->open(std::move(listeners), {[](const Claim&) { return Verdict::welcome; }, entered});
  }

  void call(unsigned how) {
    if (waits_) return;
    waits_ = true;
    held_ = std::exchange(planned_, false) ? how & 3 : 0;
    const auto deadline = how & 4 ? Clock::now() : deadline_after(milliseconds(60'000));
    regroup_->call(held_, deadline, [this](const Result<Regrouping>& result) { done(result); });
  }

  void done(const Result<Regrouping>& result) {
    require(std::exchange(waits_, false), "a call ends once");
    if (!result) return require(!result.error().message.empty(), "an error says why");
    over_ = result->gone_on;
    if (result->gone_on) return require(held_ != 0, "whoever goes on holds the job in which it does");
    planned_ = true;
    const auto& members = result->members;
    require(std::ranges::adjacent_find(members, std::greater_equal()) == members.end(),
            "members are in order");
    require(std::ranges::binary_search(members, rank_) && members.back() < world,
            "members are ranks, this one too");
    require(members.size() == 1 || parse_root(result->meeting.root).ok(), "there is a place to meet");
  }

  // Somebody at this rank's door, who has proven to be a rank.
  void come(unsigned who) {
    const Claim claim{epoch, who & 3, uint16_t(who & 4 ? 0xfffe : 0xffff)};
    require(Regroup::is_for(claim), "it is here to regroup");
    if (regroup_->admit(claim) != Verdict::welcome) return;
    auto [mine, theirs] = fuzz::stream_pair();
    const Address nowhere = local_address(mine.get());
    regroup_->entered(claim, adopt(context_, std::move(mine), nowhere));
    peers_.push_back({claim.rank, std::move(theirs)});
  }

  void close(unsigned which) {
    if (!peers_.empty()) peers_.erase(peers_.begin() + which % peers_.size());
  }

  void say(unsigned which) {
    if (peers_.empty()) return;
    const auto& [from, socket] = peers_[which % peers_.size()];
    const auto how = input_.value<uint8_t>();
    Message message{how & 1 ? Kind(how >> 4) : Kind::regroup, from, rank_, {}};
    if (how & 2) {
      const auto raw = input_.take(how >> 2);
      message.body.assign(raw.begin(), raw.end());
    } else {
      message.body = encode(note(how));
    }
    const Bytes bytes = encode(message);
    ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  RegroupNote note(unsigned how) {
    RegroupNote note;
    note.word = RegroupNote::Word(input_.value<uint8_t>() % 7);
    note.leader = input_.value<uint8_t>() % (world + 1);
    note.number = input_.value<uint8_t>() & 3;
    for (int left = input_.value<uint8_t>() % 6; left > 0; --left)
      note.ranks.push_back(input_.value<uint8_t>() % (world + 1));
    note.root = how & 4 ? "unix:@there" : "nowhere";
    note.silent = how & 8;
    return note;
  }

  fuzz::Input& input_;
  const Rank rank_;
  asio::io_context context_;
  std::shared_ptr<Regroup> regroup_;
  std::vector<std::shared_ptr<Door>> doors_;
  std::vector<std::pair<Rank, Descriptor>> peers_;  // their ends of the connections
  bool waits_ = false, planned_ = false, over_ = false;
  uint64_t held_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int free_before = fuzz::lowest_free();
  fuzz::Input input(data, size);
  Game(input).play();
  require(fuzz::lowest_free() == free_before, "every connection is closed");
  return 0;
}
