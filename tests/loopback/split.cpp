// Communicators made from a communicator.
#include <asio/ip/address.hpp>
#include <future>
#include <numeric>

#include "base/root_address.hpp"
#include "bootstrap/interfaces.hpp"
#include "bootstrap/socket.hpp"
#include "engine/call.hpp"
#include "ranks.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

Result<void> run_as_member(Communicator& comm, const engine::Call& call);
// An explicit instantiation may name what is private: these tests make the calls of which split consists.
template <auto member>
struct Opened {
  friend Result<void> run_as_member(Communicator& comm, const engine::Call& call) {
    return (comm.*member)(call, {}, {});
  }
};
template struct Opened<&Communicator::run>;

// One of the two exchanges of split, `all` having this rank's record in its place.
bool exchange_as_split(Communicator& comm, std::vector<std::byte>& all) {
  engine::Call call{.operation = schedule::Operation::all_gather, .part_of = engine::PartOf::split};
  call.type = DataType::u8;
  call.count = all.size();
  call.input = all.data() + all.size() / comm.world() * comm.rank();
  call.output = all.data();
  return run_as_member(comm, call).ok();
}

// Every rank's number in `of`, in the order of the ranks of `comm`.
std::vector<uint32_t> who_is_in(Communicator& comm, Rank of) {
  std::vector<uint32_t> all(comm.world());
  const std::vector<uint32_t> own{of};
  CHECK(comm.all_gather(std::span(own), std::span(all)).ok());
  return all;
}

int64_t sum(Communicator& comm, int64_t value) {
  std::vector<int64_t> data(3, value);
  const auto done = comm.all_reduce(std::span(data));
  CHECK_MESSAGE(done.ok(), (done ? "" : done.error().message));
  return data[2];
}

Communicator made(Result<std::optional<Communicator>> part) {
  REQUIRE_MESSAGE(part.ok(), (part ? "" : part.error().message));
  REQUIRE(part->has_value());
  return std::move(**part);
}

// "host:port" at a free port. Another program may take it in between; then the test fails by its text.
std::string root_at(const asio::ip::address& ip) {
  const auto socket = bootstrap::listen_on(bootstrap::tcp_address(ip, 0));
  REQUIRE(socket.ok());
  return join_host_port(ip.to_string(), bootstrap::port_of(bootstrap::local_address(socket->get())));
}

}  // namespace

TEST_CASE("split: odd and even, reversed by key, one alone, one in none") {
  on_ranks(5, [](Communicator& comm) {
    const Rank rank = comm.rank();
    Communicator parity = made(comm.split(rank % 2));
    CHECK(who_is_in(parity, rank) ==
          (rank % 2 ? std::vector<uint32_t>{1, 3} : std::vector<uint32_t>{0, 2, 4}));
    CHECK(parity.rank() == rank / 2);

    Communicator reversed = made(comm.split(3, -int64_t(rank)));
    CHECK(who_is_in(reversed, rank) == std::vector<uint32_t>{4, 3, 2, 1, 0});

    Communicator alone = made(comm.split(rank));
    CHECK(alone.world() == 1);
    CHECK(sum(alone, rank) == rank);

    const auto some = comm.split(rank == 2 ? std::nullopt : std::optional(0u));
    REQUIRE(some.ok());
    CHECK(some->has_value() == (rank != 2));
    if (*some) CHECK((*some)->world() == 4);

    // Two levels deep, and all of them at once.
    if (rank % 2 == 0) {
      Communicator grandchild = made(parity.split(0, rank == 2 ? -1 : 0));
      CHECK(who_is_in(grandchild, rank) == std::vector<uint32_t>{2, 0, 4});
    }
    CHECK(sum(parity, rank) == (rank % 2 ? 4 : 6));
    CHECK(sum(comm, rank) == 10);
    CHECK(sum(reversed, rank) == 10);
  });
}

TEST_CASE("split: over TCP roots, on loopback and, with a secret, on the network") {
  std::vector<asio::ip::address> addresses{asio::ip::address_v4::loopback()};
  for (const auto& address : bootstrap::machine_addresses())
    if (address.ip.is_v4() && !address.ip.is_loopback()) addresses.push_back(address.ip);
  for (const auto& ip : addresses) {
    CAPTURE(ip.to_string());
    auto options = options_of_ranks(3);
    const std::string root = root_at(ip);
    for (auto& own : options) own.root = root;
    on_ranks(options, [](Communicator& comm) {
      const Rank rank = comm.rank();
      CHECK(sum(comm, rank) == 3);
      // Led by rank 2, and by rank 0.
      Communicator reversed = made(comm.split(0, -int64_t(rank)));
      CHECK(who_is_in(reversed, rank) == std::vector<uint32_t>{2, 1, 0});
      auto twin = reversed.duplicate();
      REQUIRE(twin.ok());
      CHECK(who_is_in(*twin, rank) == std::vector<uint32_t>{2, 1, 0});
      auto other = comm.duplicate();
      REQUIRE(other.ok());
      CHECK(who_is_in(*other, rank) == std::vector<uint32_t>{0, 1, 2});
    });
  }
}

TEST_CASE("split: a duplicate is used from another thread, in another order than its parent") {
  on_ranks(3, [](Communicator& comm) {
    auto twin = comm.duplicate();
    REQUIRE(twin.ok());
    const auto use = [](Communicator& one, int64_t factor) {
      int wrong = 0;
      for (int64_t i = 0; i < 200; i++) {
        std::vector<int64_t> data(50, factor * (i + one.rank()));
        if (i % 2 == 0)
          wrong += !one.all_reduce(std::span(data)).ok();
        else
          wrong += !one.async_all_reduce(std::span(data))->wait().ok();
        wrong += data != std::vector<int64_t>(50, factor * (3 * i + 3));
      }
      return wrong;
    };
    auto other = std::async(std::launch::async, [&] { return use(*twin, 1000); });
    CHECK(use(comm, 1) == 0);
    CHECK(other.get() == 0);
  });
}

TEST_CASE("split: operations on the parent and its parts are interleaved, asynchronous ones too") {
  on_ranks(4, [](Communicator& comm) {
    const Rank rank = comm.rank();
    Communicator half = made(comm.split(rank / 2));
    std::vector<std::vector<int32_t>> whole(20), part(20);
    std::vector<Work> works;
    for (size_t i = 0; i < 20; i++) {
      whole[i].assign(100 * i, int32_t(rank));
      part[i].assign(100 * i, int32_t(rank));
      // The order between the two communicators differs from rank to rank.
      for (const bool first : {rank % 2 == 0, rank % 2 != 0}) {
        auto work = (first ? comm : half).async_all_reduce(std::span(first ? whole[i] : part[i]));
        REQUIRE(work.ok());
        works.push_back(std::move(*work));
      }
    }
    CHECK(comm.barrier().ok());
    CHECK(half.barrier().ok());
    for (Work& work : works) CHECK(work.test());
    for (size_t i = 0; i < 20; i++) {
      CHECK(whole[i] == std::vector<int32_t>(100 * i, 6));
      CHECK(part[i] == std::vector<int32_t>(100 * i, rank / 2 == 0 ? 1 : 5));
    }
  });
}

TEST_CASE("split: a child outlives its parent, and the parent its child") {
  on_ranks(3, [](Communicator& comm) {
    auto child = comm.duplicate();
    REQUIRE(child.ok());
    {
      auto brief = comm.duplicate();
      REQUIRE(brief.ok());
      CHECK(sum(*brief, 1) == 3);
    }
    CHECK(sum(comm, 2) == 6);
    { const Communicator gone = std::move(comm); }
    CHECK(sum(*child, 3) == 9);
    auto grandchild = child->duplicate();  // made without the first one
    REQUIRE(grandchild.ok());
    CHECK(sum(*grandchild, 4) == 12);
  });
}

TEST_CASE("split: the failure of a child is not its parent's, nor the other way round") {
  on_ranks(3, [](Communicator& comm) {
    auto child = comm.duplicate(), other = comm.duplicate();
    REQUIRE(child.ok());
    REQUIRE(other.ok());
    if (comm.rank() == 1) child->abort();
    const auto began = Clock::now();
    CHECK(!child->barrier().ok());
    CHECK(since(began) < milliseconds(1000));
    CHECK(sum(comm, 1) == 3);
    CHECK(sum(*other, 1) == 3);  // so every rank has its sum from `comm`
    if (comm.rank() == 2) comm.abort();
    CHECK(!comm.barrier().ok());
    CHECK(sum(*other, 1) == 3);
  });
}

TEST_CASE("split: a rank that does not join its part is named by its rank in the parent") {
  auto options = options_of_ranks(4);
  for (Options& own : options) own.init_timeout = milliseconds(1000);
  on_ranks(options, [](Communicator& comm) {
    if (comm.rank() == 3) {
      // As split does it with color 1, up to the moment before it would join.
      std::vector<std::byte> choices(4 * 16), invitations(4 * 320);
      choices[3 * 16 + 8] = choices[3 * 16 + 12] = std::byte(1);
      CHECK(exchange_as_split(comm, choices));
      CHECK(exchange_as_split(comm, invitations));
    } else {
      const auto part = comm.split(comm.rank() / 2);
      CHECK(part.ok() == (comm.rank() < 2));
      if (comm.rank() == 2) {
        REQUIRE(!part.ok());
        CHECK(part.error().code == ErrorCode::timeout);
        CHECK(part.error().peer == 3u);
        CAPTURE(part.error().message);
        CHECK(part.error().message.find("in the new communicator of ranks 2, 3: rank 1 of 2 did not join") ==
              0);
      }
    }
    CHECK(sum(comm, 1) == 4);
  });
}

TEST_CASE("split: a rank that goes away instead of joining its part ends the wait of the others") {
  on_ranks(3, [](Communicator& comm) {
    std::optional<Communicator> mine(std::move(comm));
    if (mine->rank() == 1) {
      // As split does it, up to the moment before it would join.
      std::vector<std::byte> choices(3 * 16), invitations(3 * 320);
      choices[16 + 12] = std::byte(1);  // color 0, taken
      CHECK(exchange_as_split(*mine, choices));
      CHECK(exchange_as_split(*mine, invitations));
      mine->abort();
      return;
    }
    const auto began = Clock::now();
    const auto part = mine->split(0);
    CHECK(since(began) < milliseconds(2000));
    REQUIRE(!part.ok());
    CHECK(part.error().code == ErrorCode::aborted);
    CHECK(part.error().peer == 1u);
  });
}
