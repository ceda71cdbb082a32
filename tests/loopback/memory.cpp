// Shared memory before it is trusted: areas, the self-test, and the exchange at join with its one verdict.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "bootstrap/dial.hpp"
#include "bootstrap/exchange.hpp"
#include "fleet.hpp"
#include "transport/shm/self_test.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr shm::Sizes sizes{.slot_bytes = 4096, .slots = 4};

shm::Area make(Rank rank, uint64_t epoch = 7) {
  auto area = shm::Area::make({epoch, rank, 2}, sizes);
  REQUIRE(area.ok());
  return std::move(*area);
}

Result<shm::Area> view(const shm::Area& area, const shm::Area::Place& as) {
  return shm::Area::open(Descriptor(::dup(area.descriptor())), as, sizes);
}
shm::Area view(const shm::Area& area) { return std::move(*view(area, area.place())); }

void check_fails(const Result<void>& outcome, const char* text) {
  CHECK_FALSE(outcome.ok());
  if (!outcome) CHECK(contains(outcome.error().message, text));
}

// Attaches nothing; notes what it is asked, and fails where it is told to.
class Pretender : public bootstrap::Sharing {
 public:
  enum class Failing { nothing, begin, memory, attach, check };
  explicit Pretender(Failing failing = Failing::nothing) : failing_(failing) {}

  Result<int> begin(Rank, uint32_t, uint64_t) override {
    if (failing_ == Failing::memory) throw std::bad_alloc();
    if (failing_ == Failing::begin) return Error{ErrorCode::system, "there is no memory"};
    memory_ = Descriptor(::memfd_create("test", MFD_CLOEXEC));
    return memory_.get();
  }
  Result<void> attach(Rank peer, Descriptor memory) noexcept override {
    CHECK(::fcntl(memory.get(), F_GETFD) == FD_CLOEXEC);
    return step(Failing::attach, peer, 1);
  }
  Result<void> check(Rank peer) noexcept override { return step(Failing::check, peer, 2); }
  Result<void> confirm(Rank peer) noexcept override { return step(Failing::nothing, peer, 3); }
  void end(bool shared) noexcept override {
    shared_ = shared;
    ends_++;
  }

  bool shared() const { return ends_ == 1 && shared_; }
  bool refused() const { return ends_ == 1 && !shared_; }
  /// Every step with every peer, once.
  bool met(uint32_t peers) const {
    return steps_.size() == peers && std::ranges::all_of(steps_, [](auto& step) { return step.second == 3; });
  }

 private:
  Result<void> step(Failing here, Rank peer, int number) {
    CHECK(steps_[peer]++ + 1 == number);
    if (here == failing_ && here != Failing::nothing) return Error{ErrorCode::system, "it shows garbage"};
    return {};
  }

  const Failing failing_;
  Descriptor memory_;
  std::map<Rank, int> steps_;
  int ends_ = 0;
  bool shared_ = false;
};

struct Trial {
  std::vector<Seat> seats;
  std::vector<Pretender*> pretenders;
  double seconds = 0;
};

// Ranks with a pretender each (one of them failing), and RONDO_TRANSPORT of each rank.
Trial try_to_share(const std::vector<std::string>& transports, Rank odd = 0,
                   Pretender::Failing failing = Pretender::Failing::nothing) {
  const auto world = uint32_t(transports.size());
  const std::string root = unix_root();
  Trial trial{std::vector<Seat>(world), {}};
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (Rank rank = 0; rank < world; ++rank) {
    auto pretender = std::make_unique<Pretender>(rank == odd ? failing : Pretender::Failing::nothing);
    trial.pretenders.push_back(pretender.get());
    trial.seats[rank].handler->shares = std::move(pretender);
    Options options = options_for(rank, world, root);
    options.transport = transports[rank];
    threads.emplace_back([&, rank, options] { join(trial.seats[rank], options); });
  }
  for (auto& thread : threads) thread.join();
  trial.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return trial;
}

}  // namespace

TEST_CASE("memory: an area takes 4 MiB at most, up to 64 ranks") {
  CHECK(shm::Sizes::for_world(2).slot_bytes == 64 << 10);
  CHECK(shm::Sizes::for_world(8).slot_bytes == 64 << 10);
  CHECK(shm::Sizes::for_world(12).slot_bytes == 32 << 10);
  CHECK(shm::Sizes::for_world(64).slot_bytes == 8 << 10);
  CHECK(shm::Sizes::for_world(1024).slot_bytes == 4 << 10);
  for (uint32_t world = 1; world <= 64; ++world) {
    const auto chosen = shm::Sizes::for_world(world);
    CHECK(uint64_t(world) * chosen.blocks * chosen.slot_bytes <= 4u << 20);
  }
}

TEST_CASE("memory: an area is opened only as what it is, and only when it cannot shrink") {
  const shm::Area area = make(1);
  CHECK(view(area, {7, 1, 2}).ok());
  for (const shm::Area::Place& wrong : {shm::Area::Place{8, 1, 2}, {7, 0, 2}, {7, 1, 3}}) {
    const auto opened = view(area, wrong);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == ErrorCode::mismatch);
    CHECK(opened.error().peer == wrong.rank);
  }
  CHECK(::ftruncate(area.descriptor(), 0) != 0);
  CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, area.descriptor(), 0) == MAP_FAILED);

  // The same bytes in a memfd that somebody could truncate.
  const off_t bytes = ::lseek(area.descriptor(), 0, SEEK_END);
  Descriptor loose(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(loose.get(), bytes) == 0);
  std::vector<char> page(4096);
  REQUIRE(::pread(area.descriptor(), page.data(), page.size(), 0) == 4096);
  REQUIRE(::pwrite(loose.get(), page.data(), page.size(), 0) == 4096);
  const auto opened = shm::Area::open(std::move(loose), {7, 1, 2}, sizes);
  REQUIRE_FALSE(opened.ok());
  CHECK(contains(opened.error().message, "is not sealed"));
}

TEST_CASE("memory: the self-test passes over memory that is shared") {
  const shm::Area zero = make(0), one = make(1), zero_seen = view(zero), one_seen = view(one);
  shm::SelfTest at_zero(zero, one_seen), at_one(one, zero_seen);
  CHECK(at_zero.say().ok());
  CHECK(at_one.say().ok());
  CHECK(at_zero.hear().ok());
  CHECK(at_one.hear().ok());
  CHECK(at_zero.done().ok());
  CHECK(at_one.done().ok());
}

TEST_CASE("memory: the self-test fails over memory that is not, or not right") {
  const shm::Area zero = make(0), one = make(1), zero_seen = view(zero), one_seen = view(one);
  shm::SelfTest at_zero(zero, one_seen), at_one(one, zero_seen);
  SUBCASE("a copy made when it was attached") {
    const shm::Area copy = make(0), copy_seen = view(copy);
    shm::SelfTest at_copy(one, copy_seen);
    CHECK(at_zero.say().ok());
    check_fails(at_copy.hear(), "what the peer wrote does not show");
  }
  SUBCASE("the peer's writes show, this rank's do not") {
    const shm::Area copy = make(1), copy_seen = view(copy);
    shm::SelfTest at_zero_of_copy(zero, copy_seen);
    CHECK(at_zero_of_copy.say().ok());
    CHECK(at_one.hear().ok());
    check_fails(at_zero_of_copy.done(), "what the peer released does not show");
  }
  SUBCASE("one wrong byte") {
    for (const bool small : {true, false}) {
      const shm::Area again = make(0), again_seen = view(again);
      shm::SelfTest from(again, one_seen), to(one, again_seen);
      CHECK(from.say().ok());
      (small ? again.slots(1)[0].data[3] : again.block(1, 0)[999]) ^= std::byte(1);
      check_fails(to.hear(), "shows as something else");
    }
  }
  SUBCASE("another job's pattern") {
    const shm::Area other = make(0, 8), other_seen = view(other);
    shm::SelfTest from(other, one_seen), to(one, other_seen);
    CHECK(from.say().ok());
    check_fails(to.hear(), "shows as something else");
  }
}

TEST_CASE("memory: every rank meets every other at join, and all conclude that they share") {
  for (const uint32_t world : {2u, 3u, 9u}) {
    const auto trial = try_to_share(std::vector<std::string>(world, "auto"));
    for (Rank rank = 0; rank < world; ++rank) {
      CAPTURE(rank);
      REQUIRE(trial.seats[rank].job);
      CHECK(trial.seats[rank].job->shares_memory());
      CHECK(trial.pretenders[rank]->met(world - 1));
      CHECK(trial.pretenders[rank]->shared());
    }
  }
}

TEST_CASE(
    "memory: one rank that cannot share is enough: tcp for all, or an error for all where shm is a must") {
  using Failing = Pretender::Failing;
  for (const Failing failing : {Failing::begin, Failing::memory, Failing::attach, Failing::check}) {
    for (const Rank odd : {0u, 2u}) {
      const auto fallen_back = try_to_share(std::vector<std::string>(4, "auto"), odd, failing);
      for (Rank rank = 0; rank < 4; ++rank) {
        REQUIRE(fallen_back.seats[rank].job);
        CHECK_FALSE(fallen_back.seats[rank].job->shares_memory());
        CHECK(fallen_back.pretenders[rank]->refused());
      }
      CHECK(fallen_back.seconds < 2);
      const auto failed = try_to_share(std::vector<std::string>(4, "shm"), odd, failing);
      for (Rank rank = 0; rank < 4; ++rank) {
        REQUIRE(failed.seats[rank].error);
        const Error& error = *failed.seats[rank].error;
        CAPTURE(error.message);
        CHECK(error.code == ErrorCode::system);
        CHECK(contains(error.message, "RONDO_TRANSPORT=shm, but the ranks cannot share memory: "));
        CHECK(contains(error.message, "rank " + std::to_string(odd) + " (pid "));
        CHECK(contains(error.message, failing == Failing::begin    ? "there is no memory"
                                      : failing == Failing::memory ? "memory has run out"
                                                                   : "it shows garbage"));
      }
      CHECK(failed.seconds < 2);
    }
  }
}

TEST_CASE("memory: RONDO_TRANSPORT of rank 0 counts, whatever the others say") {
  const auto tcp = try_to_share({"tcp", "shm", "auto"});
  const auto shm = try_to_share({"shm", "tcp", "auto"});
  for (Rank rank = 0; rank < 3; ++rank) {
    REQUIRE(tcp.seats[rank].job);
    CHECK_FALSE(tcp.seats[rank].job->shares_memory());
    CHECK(tcp.pretenders[rank]->refused());
    CHECK(tcp.pretenders[rank]->met(0));
    REQUIRE(shm.seats[rank].job);
    CHECK(shm.seats[rank].job->shares_memory());
  }
}

TEST_CASE("memory: a stranger at a memory door gets nothing and disturbs nobody") {
  using namespace rondo::bootstrap;
  // Rank 0 comes last, so rank 1's door can be found while it waits.
  const std::string root = unix_root();
  const auto doors = [] {  // of this process
    std::set<std::string> own;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      own.insert(std::filesystem::read_symlink(entry, gone).string());
    std::vector<std::string> names;
    std::ifstream list("/proc/net/unix");
    for (std::string line; std::getline(list, line);) {
      std::istringstream words(line);
      std::string inode, path;
      for (int i = 0; i < 7; ++i) words >> inode;
      words >> path;
      if (path.starts_with("@rondo-memory-") && own.contains("socket:[" + inode + "]"))
        names.push_back(path.substr(1));
    }
    return names;
  };
  const auto before = doors();
  Seat zero, one;
  for (Seat* seat : {&zero, &one}) seat->handler->shares = std::make_unique<Pretender>();
  std::thread rank_1([&] { join(one, options_for(1, 2, root)); });
  std::string name;
  for (int i = 0; i < 500 && name.empty(); ++i) {
    for (const auto& door : doors())
      if (std::ranges::find(before, door) == before.end()) name = door;
    std::this_thread::sleep_for(milliseconds(2));
  }
  REQUIRE_FALSE(name.empty());
  const Address address = unix_address(name);
  std::atomic<int> refused{0};
  std::vector<std::shared_ptr<Dial>> dials;
  const auto knock = [&](const std::string& secret) {
    dials.push_back(Dial::start(
        Service::instance()->context(), address, Credentials{secret}, Purpose::memory, {1, 0, 0},
        deadline_after(milliseconds(5000)),
        [&](Socket, const std::optional<Dial::Failure>& failure) { refused += failure.has_value(); }));
  };
  const auto service = Service::instance();
  knock("another secret");
  knock("the secret of this test");  // but it cannot know the job's epoch
  Stranger silent(address);
  join(zero, options_for(0, 2, root));
  rank_1.join();
  for (Seat* seat : {&zero, &one}) {
    REQUIRE(seat->job);
    CHECK(seat->job->shares_memory());
  }
  CHECK(silent.closed_by_peer());
  for (int i = 0; i < 500 && refused < 2; ++i) std::this_thread::sleep_for(milliseconds(2));
  CHECK(refused == 2);
  CHECK(doors() == before);
}
