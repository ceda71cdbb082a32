// Ranks whose addresses are others for those who dial them: forwarders stand for the network between.
#include <algorithm>
#include <numeric>

#include "proxy.hpp"
#include "ranks.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

// Every rank listens at one port of its own and is dialled at a forwarder's; so is rank 0.
struct Translated {
  explicit Translated(uint32_t world) {
    for (Rank rank = 0; rank < world; ++rank) {
      const uint16_t port = free_port();
      forwarders.push_back(std::make_unique<Proxy>(port));
      Options own = options_for(rank, world, forwarders[0]->address());
      own.transport = "tcp";
      if (rank == 0) own.listen = "127.0.0.1:" + std::to_string(port);
      if (rank > 0) own.ports = std::to_string(port);
      if (rank > 0) own.advertise = forwarders[rank]->address();
      options.push_back(own);
    }
  }
  std::vector<std::unique_ptr<Proxy>> forwarders;
  std::vector<Options> options;
};

}  // namespace

TEST_CASE("translated: ranks dial what the others advertise, and rank 0 listens elsewhere than at the root") {
  Translated job(4);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      auto comm = Communicator::create(job.options[rank]);
      REQUIRE_MESSAGE(comm.ok(), (comm ? "" : comm.error().message));
      std::vector<int32_t> data(100'000), all(400'000);
      std::iota(data.begin(), data.end(), int32_t(rank));
      CHECK(comm->all_gather(std::span<const int32_t>(data), std::span(all)).ok());
      CHECK(comm->all_reduce(std::span(data)).ok());
      for (size_t i = 0; i < data.size(); ++i) CHECK_UNARY(data[i] == int32_t(4 * i + 6));
      for (size_t i = 0; i < all.size(); ++i) CHECK_UNARY(all[i] == int32_t(i % 100'000 + i / 100'000));
    });
  for (auto& thread : threads) thread.join();
  CHECK(job.forwarders[0]->connections() >= 3);
  for (Rank rank = 1; rank < 4; ++rank) CHECK(job.forwarders[rank]->connections() > 0);
}

TEST_CASE("translated: a rank says the address that the others dial") {
  Translated job(2);
  auto seats = join_all(job.options);
  check_joined(seats);
  CHECK(seats[1].job->address() == job.forwarders[1]->address());
  seats[0].job->connect(1, 0);
  check_talk(seats[0].handler->socket({1, 0}), seats[1].handler->socket({0, 0}), 'a');
  CHECK(job.forwarders[1]->connections() == 1);
}

TEST_CASE("translated: a port stands for the first of RONDO_PORTS, also for the parts of a communicator") {
  const uint16_t port = free_port();
  Options one = options_for(1, 2, "127.0.0.1:" + std::to_string(free_port()));
  Options zero = one;
  zero.rank = 0;
  one.ports = std::to_string(port) + "-" + std::to_string(port + 3);
  one.advertise = "127.0.0.1:" + std::to_string(port + 100);
  auto seats = join_all({zero, one});
  check_joined(seats);
  std::vector<std::string> forwarded;  // what leads to the listeners of this process; rank 0 has one too
  for (const auto& address : tcp_listeners())
    forwarded.push_back("127.0.0.1:" + std::to_string(bootstrap::port_of(address) + 100));
  CHECK(std::ranges::count(forwarded, seats[1].job->address()) == 1);
}

TEST_CASE("translated: when rank 0 is gone the others find each other by what they advertise") {
  constexpr uint16_t ports = 3;  // of each rank: the job's, a place to meet, the successor's
  Translated job(3);
  std::vector<std::unique_ptr<Proxy>> forwarders;
  for (Options& own : job.options) {
    const uint16_t first = free_port(), seen = uint16_t(first + 200);
    own.ports = std::to_string(first) + "-" + std::to_string(first + ports - 1);
    own.advertise = "127.0.0.1:" + std::to_string(seen);
    for (uint16_t i = 0; i < ports; ++i)
      forwarders.push_back(std::make_unique<Proxy>(uint16_t(first + i), uint16_t(seen + i)));
  }
  on_ranks(job.options, [](Communicator& comm) {
    CHECK(comm.barrier().ok());
    if (comm.rank() == 0) return;
    auto rest = comm.shrink();
    REQUIRE_MESSAGE(rest.ok(), (rest ? "" : rest.error().message));
    CHECK(rest->parent_ranks() == std::vector<Rank>{1, 2});
    CHECK(rest->barrier().ok());
  });
  const auto used = [&](Rank rank) {
    return std::count_if(forwarders.begin() + rank * ports, forwarders.begin() + (rank + 1) * ports,
                         [](const auto& forwarder) { return forwarder->dialled() > 0; });
  };
  CHECK(used(0) == 1);  // those that are left have asked there
  CHECK(used(1) == 1);
  CHECK(used(2) == 2);  // its links, of the job and of the successor
}
