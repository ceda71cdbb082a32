// What the engine says, and when, if ranks disagree, stall or vanish.
#include <doctest/doctest.h>

#include <array>
#include <future>
#include <thread>

#include "world.hpp"

namespace rondo::test {
namespace {

using schedule::Operation;
using std::chrono::duration_cast;

struct Outcome {
  std::optional<Error> error;
  milliseconds took;
};

engine::Call all_reduce_of(std::vector<float>& data) {
  auto* bytes = reinterpret_cast<std::byte*>(data.data());
  return {.operation = Operation::all_reduce,
          .algorithm = schedule::Algorithm::ring,
          .count = data.size(),
          .input = bytes,
          .output = bytes};
}

// Every rank runs its call; no rank is told of another's failure but by its own links.
std::vector<Outcome> run_calls(World& world, milliseconds timeout,
                               const std::function<engine::Call(Rank)>& call) {
  std::vector<Outcome> outcomes(world.size());
  world.run([&](Rank rank, engine::Engine& engine) {
    const TimePoint began = Clock::now();
    auto result = engine.run(call(rank), deadline_after(timeout));
    outcomes[rank].took = duration_cast<milliseconds>(Clock::now() - began);
    if (!result) outcomes[rank].error = result.error();
  });
  return outcomes;
}

// A peer that takes all that is sent, and at one poll is found to have released it and left.
class Leaving final : public Fabric, Tx, Rx {
 public:
  explicit Leaving(int at) : at_(at) {}
  LinkCaps link_caps() const noexcept override { return caps_; }
  Result<Pair> open(Rank, Lane) noexcept override { return Pair{this, this}; }
  void arm(bool) noexcept override {}
  void close() noexcept override {}

 private:
  const LinkCaps& caps() const noexcept override { return caps_; }
  LinkState poll() noexcept override {
    left_ = left_ || ++polls_ == at_;
    return left_ ? LinkState::closed : LinkState::open;
  }
  int descriptor() const noexcept override { return -1; }
  std::span<std::byte> acquire(size_t) noexcept override { return {}; }
  void commit(size_t) noexcept override {}
  size_t send(View source, Traffic) noexcept override { return sent_ += source.bytes, source.bytes; }
  uint64_t completed() const noexcept override { return left_ ? sent_ : 0; }
  View peek(size_t, size_t) noexcept override { return {}; }
  void release(size_t) noexcept override {}
  size_t receive(std::span<std::byte>) noexcept override { return 0; }

  LinkCaps caps_{.slot_bytes = 4096, .slots = 4};
  int at_, polls_ = 0;
  bool left_ = false;
  uint64_t sent_ = 0;
};

// Two peers that make the same call, without any data: they say the header that they are told. Rank 1 has then ended
// its part and leaves; rank 2 says it only when that has been seen, at the third poll: the engine has asked why
// it does not get on.
class Leavers final : public Fabric {
 public:
  LinkCaps link_caps() const noexcept override { return caps; }
  Result<Pair> open(Rank peer, Lane) noexcept override { return Pair{&peers_[peer - 1], &peers_[peer - 1]}; }
  void arm(bool) noexcept override {}
  void close() noexcept override {}

 private:
  static constexpr LinkCaps caps{.slot_bytes = 4096, .slots = 4};
  class Peer final : public Tx, public Rx {
   public:
    Peer(std::vector<std::byte>& header, int& polls, bool leaves)
        : header_(header), polls_(polls), leaves_(leaves) {}

   private:
    const LinkCaps& caps() const noexcept override { return Leavers::caps; }
    void close() noexcept override {}
    LinkState poll() noexcept override {
      return leaves_ && ++polls_ >= 2 ? LinkState::closed : LinkState::open;
    }
    int descriptor() const noexcept override { return -1; }
    std::span<std::byte> acquire(size_t) noexcept override { return {}; }
    void commit(size_t) noexcept override {}
    size_t send(View source, Traffic) noexcept override {
      header_.assign(source.data, source.data + source.bytes);
      return sent_ += source.bytes, source.bytes;
    }
    uint64_t completed() const noexcept override { return sent_; }
    View peek(size_t max, size_t) noexcept override {
      if (given_ || header_.size() != max || (!leaves_ && polls_ < 3)) return {};
      return {header_.data(), max};
    }
    void release(size_t) noexcept override { given_ = true; }
    size_t receive(std::span<std::byte>) noexcept override { return 0; }

    std::vector<std::byte>& header_;
    int& polls_;  // of the one that leaves
    const bool leaves_;
    bool given_ = false;
    uint64_t sent_ = 0;
  };
  std::vector<std::byte> header_;
  int polls_ = 0;
  std::array<Peer, 2> peers_{Peer(header_, polls_, true), Peer(header_, polls_, false)};
};

}  // namespace

TEST_CASE("mismatch: each field that differs is named, and nothing is written past the smaller buffer") {
  struct Difference {
    const char* text;
    void (*apply)(engine::Call&);
  };
  const Difference differences[] = {
      {"operation: ", [](engine::Call& call) { call.operation = Operation::all_gather; }},
      {"grow", [](engine::Call& call) { call.part_of = engine::PartOf::grow; }},
      {"type: ", [](engine::Call& call) { call.type = DataType::i32; }},
      {"reduction: ", [](engine::Call& call) { call.reduction = Reduction::max; }},
      {"count, root, order or tag", [](engine::Call& call) { call.count -= 1; }},
      {"count, root, order or tag", [](engine::Call& call) { call.root = 1; }},
      {"count, root, order or tag", [](engine::Call& call) { call.tag = 1; }},
      {"count, root, order or tag", [](engine::Call& call) { call.layout = 1; }},
  };
  for (const Difference& difference : differences) {
    CAPTURE(std::string(difference.text));
    World world = World::over_sockets(2, SocketKind::tcp4);
    std::vector<std::vector<float>> data(2, std::vector<float>(4096, 1.f));
    const auto outcomes = run_calls(world, milliseconds(5000), [&](Rank rank) {
      engine::Call call = all_reduce_of(data[rank]);
      if (rank == 1) difference.apply(call);
      return call;
    });
    for (Rank rank = 0; rank < 2; rank++) {
      REQUIRE(outcomes[rank].error);
      CHECK(outcomes[rank].error->code == ErrorCode::mismatch);
      CHECK(outcomes[rank].error->peer == 1 - rank);
      CHECK(outcomes[rank].error->message.find(difference.text) != std::string::npos);
      CHECK(outcomes[rank].took < milliseconds(1000));
      for (const float x : data[rank]) CHECK(x == 1.f);
    }
  }
}

TEST_CASE("mismatch: a rank that has left a call out is told of that call, though the others have ended it") {
  World world = World::over_sockets(2, SocketKind::tcp4);
  std::vector<std::vector<float>> data(2, std::vector<float>(8, 1.f));
  std::vector<Outcome> outcomes(2);
  std::promise<void> ended;
  world.run([&](Rank rank, engine::Engine& engine) {
    // A broadcast of rank 0 does not wait for rank 1, which leaves it out.
    engine::Call broadcast = all_reduce_of(data[rank]);
    broadcast.operation = Operation::broadcast;
    if (rank == 0) {
      CHECK(engine.run(broadcast, soon()).ok());
      ended.set_value();
    } else {
      // Its header would be seen at the end of the broadcast already.
      CHECK(ended.get_future().wait_for(milliseconds(5000)) == std::future_status::ready);
    }
    if (auto result = engine.run(all_reduce_of(data[rank]), soon()); !result)
      outcomes[rank].error = result.error();
  });
  REQUIRE(outcomes[1].error);
  CHECK(outcomes[1].error->code == ErrorCode::mismatch);
  CHECK(outcomes[1].error->message.find("operation: all_reduce here, broadcast there") != std::string::npos);
  REQUIRE(outcomes[0].error);
  CHECK(outcomes[0].error->message.find("as collective #1: operation: broadcast here, all_reduce there") !=
        std::string::npos);
}

TEST_CASE("deadline: a link that stalls ends the call on time and names whom it waits for") {
  constexpr milliseconds timeout{300};
  World world = World::over_fake(3, {.slot_bytes = 1024, .slots = 4}, {.stall_after = 5000});
  std::vector<std::vector<float>> data(3, std::vector<float>(100'000, 1.f));
  const auto outcomes = run_calls(world, timeout, [&](Rank rank) { return all_reduce_of(data[rank]); });
  for (Rank rank = 0; rank < 3; rank++) {
    REQUIRE(outcomes[rank].error);
    const Error& error = *outcomes[rank].error;
    const Rank previous = (rank + 2) % 3;
    CHECK(error.code == ErrorCode::timeout);
    CHECK(error.peer == previous);
    CHECK(error.message.find("rank " + std::to_string(previous) + " has sent") != std::string::npos);
    CHECK(error.message.find("#1 all_reduce of 100000 f32, sum") != std::string::npos);
    CHECK(outcomes[rank].took >= timeout);
    CHECK(outcomes[rank].took < timeout + milliseconds(500));
  }
}

TEST_CASE("deadline: a rank that never calls is named by the rank that waits for it") {
  World world = World::over_sockets(2, SocketKind::tcp4);
  std::vector<float> data(10, 1.f);
  const TimePoint began = Clock::now();
  const auto result = world.engine(0).run(all_reduce_of(data), deadline_after(milliseconds(200)));
  REQUIRE(!result.ok());
  CHECK(result.error().code == ErrorCode::timeout);
  CHECK(result.error().peer == 1u);
  CHECK(result.error().message.find("nothing of this operation has come from rank 1") != std::string::npos);
  CHECK(Clock::now() - began >= milliseconds(200));
  CHECK(Clock::now() - began < milliseconds(700));
}

TEST_CASE("deadline: of those that are waited for the one from which nothing has come is named") {
  // The other has called, and stalls; one of the two comes first among the links.
  for (const Rank absent : {1u, 2u}) {
    CAPTURE(absent);
    World world = World::over_fake(3, {.slot_bytes = 1024, .slots = 4}, {.stall_after = 5000});
    std::vector<std::vector<float>> data(3, std::vector<float>(100'000, 1.f));
    std::optional<Error> error;
    world.run([&](Rank rank, engine::Engine& engine) {
      if (rank == absent) return;
      engine::Call call = all_reduce_of(data[rank]);
      call.algorithm = schedule::Algorithm::direct;
      const auto result = engine.run(call, deadline_after(milliseconds(300)));
      if (rank == 0 && !result) error = result.error();
    });
    REQUIRE(error);
    CAPTURE(error->message);
    CHECK(error->code == ErrorCode::timeout);
    CHECK(error->peer == absent);
    CHECK(error->message.find("rank " + std::to_string(3 - absent) + " has sent") != std::string::npos);
    CHECK(error->message.find("nothing of this operation has come from rank " + std::to_string(absent)) !=
          std::string::npos);
  }
}

TEST_CASE("a link that closes in the middle is peer_lost, naming the peer, at once") {
  World world = World::over_fake(2, {.slot_bytes = 1024, .slots = 4}, {.close_after = 9000});
  std::vector<std::vector<float>> data(2, std::vector<float>(100'000, 1.f));
  const auto outcomes =
      run_calls(world, milliseconds(10'000), [&](Rank rank) { return all_reduce_of(data[rank]); });
  for (Rank rank = 0; rank < 2; rank++) {
    REQUIRE(outcomes[rank].error);
    CHECK(outcomes[rank].error->code == ErrorCode::peer_lost);
    CHECK(outcomes[rank].error->peer == 1 - rank);
    CHECK(outcomes[rank].took < milliseconds(1000));
  }
}

// A link whose only slot is freed by its own flush, after which nothing more will wake anybody.
class OneSlotTx final : public Tx {
 public:
  const LinkCaps& caps() const noexcept override { return caps_; }
  LinkState poll() noexcept override {
    completed_ += std::exchange(held_, 0);
    return LinkState::open;
  }
  int descriptor() const noexcept override { return -1; }
  void close() noexcept override {}
  std::span<std::byte> acquire(size_t bytes) noexcept override {
    return std::span(slot_).first(held_ > 0 ? 0 : std::min(bytes, slot_.size()));
  }
  void commit(size_t bytes) noexcept override { held_ = bytes; }
  size_t send(View source, Traffic) noexcept override {
    return held_ > 0 ? 0 : held_ = std::min(source.bytes, slot_.size());
  }
  uint64_t completed() const noexcept override { return completed_; }

 private:
  LinkCaps caps_{.slot_bytes = 256, .slots = 2};
  std::array<std::byte, 256> slot_;
  size_t held_ = 0;
  uint64_t completed_ = 0;
};

TEST_CASE("a flush that frees a slot is progress: the call does not go to sleep after it") {
  class OneLink final : public Fabric {
   public:
    LinkCaps link_caps() const noexcept override { return tx_.caps(); }
    Result<Pair> open(Rank, Lane) noexcept override { return Pair{&tx_, &unused_.rx()}; }
    void arm(bool) noexcept override {}
    void close() noexcept override {}

   private:
    OneSlotTx tx_;
    tcp::Connection unused_{Descriptor(), {}};
  } fabric;
  auto waiter = engine::Waiter::make({});  // sleeps as soon as nothing moves
  REQUIRE(waiter.ok());
  engine::Failure failure;
  engine::Engine engine({.rank = 0, .world = 2, .epoch = 1}, fabric, **waiter, failure);
  std::vector<float> data(2000);
  engine::Call call = all_reduce_of(data);
  call.operation = Operation::broadcast;
  const TimePoint began = Clock::now();
  CHECK(engine.run(call, soon()).ok());
  CHECK(Clock::now() - began < milliseconds(5000));
}

TEST_CASE("the error word ends a call that sleeps") {
  World world = World::over_sockets(2, SocketKind::tcp4);
  std::vector<float> data(10, 1.f);
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(100));
    CHECK(world.failure(0).set({ErrorCode::peer_lost, "rank 7 died", 7}));
    CHECK(!world.failure(0).set({ErrorCode::aborted, "too late"}));
    world.waiter(0).ring();
  });
  const TimePoint began = Clock::now();
  const auto result = world.engine(0).run(all_reduce_of(data), soon());
  other.join();
  REQUIRE(!result.ok());
  CHECK(result.error().code == ErrorCode::peer_lost);
  CHECK(result.error().peer == 7u);
  CHECK(Clock::now() - began < milliseconds(1000));
}

TEST_CASE("failures: a peer may leave as soon as it has released what was sent, whenever that is seen") {
  for (int at = 2; at <= 6; at++) {
    CAPTURE(at);
    Leaving peer(at);
    auto waiter = engine::Waiter::make({});
    REQUIRE(waiter.ok());
    const engine::Failure none;
    engine::Engine engine({.rank = 0, .world = 2, .epoch = 1}, peer, **waiter, none);
    std::vector<float> data(100);
    auto* bytes = reinterpret_cast<std::byte*>(data.data());
    const auto outcome = engine.run({.operation = Operation::broadcast,
                                     .algorithm = schedule::Algorithm::ring,
                                     .count = data.size(),
                                     .input = bytes,
                                     .output = bytes},
                                    deadline_after(milliseconds(100)));
    CHECK_MESSAGE(outcome.ok(), (outcome ? "" : outcome.error().message));
  }
}

TEST_CASE("failures: a peer may leave when no byte of the call is missing, though others are still awaited") {
  using schedule::Algorithm;
  for (const auto& call : {std::pair(Operation::barrier, Algorithm::direct),
                           std::pair(Operation::reduce_scatter, Algorithm::direct),
                           std::pair(Operation::all_gather, Algorithm::ring)}) {
    CAPTURE(int(call.first));
    Leavers peers;
    auto waiter = engine::Waiter::make({});
    REQUIRE(waiter.ok());
    const engine::Failure none;
    engine::Engine engine({.rank = 0, .world = 3, .epoch = 1}, peers, **waiter, none);
    std::byte nothing{};
    const auto outcome =
        engine.run({.operation = call.first, .algorithm = call.second, .input = &nothing, .output = &nothing},
                   deadline_after(milliseconds(100)));
    CHECK_MESSAGE(outcome.ok(), (outcome ? "" : outcome.error().message));
  }
}

}  // namespace rondo::test
