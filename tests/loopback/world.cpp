#include "world.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <set>
#include <tuple>

namespace rondo::test {
namespace {

void make_nonblocking(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  REQUIRE(::fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
}

void shrink_buffers(int fd) {
  const int few = 16 << 10;  // much less, and TCP crawls from one window probe to the next
  REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof few) == 0);
  REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof few) == 0);
}

Descriptor loopback_listener(int family) {
  Descriptor listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) return {};
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_six = family == AF_INET6;
  const auto* address = is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  if (::bind(listener.get(), address, is_six ? sizeof six : sizeof four) != 0) return {};
  if (::listen(listener.get(), 8) != 0) return {};
  return listener;
}

// The key is changed often, so that a test sees it happen.
std::pair<Stream, Stream> secured(Descriptor dialled, Descriptor accepted) {
  const tls::Key key = tls::derive_key("secret", {}, {});
  auto client = tls::Session::make(dialled.get(), tls::Side::dialler, key, 100);
  auto server = tls::Session::make(accepted.get(), tls::Side::acceptor, key, 100);
  REQUIRE(client.ok());
  REQUIRE(server.ok());
  bool done = false;
  for (const TimePoint deadline = soon(); !done && Clock::now() < deadline;) {
    const auto one = (*client)->handshake(), other = (*server)->handshake();
    done = one == tls::Session::Step::done && other == tls::Session::Step::done;
  }
  REQUIRE(done);
  return {Stream(std::move(dialled), std::move(*client)), Stream(std::move(accepted), std::move(*server))};
}

}  // namespace

bool has_ipv6_loopback() { return bool(loopback_listener(AF_INET6)); }

std::pair<Stream, Stream> socket_pair(SocketKind kind) {
  const bool tiny =
      kind == SocketKind::tcp4_tiny || kind == SocketKind::unix_tiny || kind == SocketKind::tls_tiny;
  if (kind == SocketKind::unix_pair || kind == SocketKind::unix_tiny) {
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    for (const int fd : pair)
      if (tiny) shrink_buffers(fd);
    return {Descriptor(pair[0]), Descriptor(pair[1])};
  }
  const int family = kind == SocketKind::tcp6 ? AF_INET6 : AF_INET;
  const Descriptor listener = loopback_listener(family);
  REQUIRE(bool(listener));
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  Descriptor dialled(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(dialled.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  Descriptor accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(bool(accepted));
  for (const int fd : {dialled.get(), accepted.get()}) {
    make_nonblocking(fd);
    if (tiny) shrink_buffers(fd);
  }
  if (kind == SocketKind::tls || kind == SocketKind::tls_tiny)
    return secured(std::move(dialled), std::move(accepted));
  return {std::move(dialled), std::move(accepted)};
}

World::World(uint32_t world) : ranks_(std::make_unique<std::vector<Member>>(world)) {
  for (Member& member : *ranks_) {
    auto waiter = engine::Waiter::make(engine::Waiter::budget_for(world));
    REQUIRE(waiter.ok());
    member.waiter = std::move(*waiter);
  }
}

// A fabric rings its peers when it ends.
World::~World() {
  if (!ranks_) return;
  for (Member& member : *ranks_) member.engine.reset();
  for (Member& member : *ranks_) member.fabric.reset();
}

void World::start(const std::vector<uint32_t>& nodes) {
  for (Rank rank = 0; rank < size(); rank++) {
    Member& member = (*ranks_)[rank];
    const engine::Engine::Place place{.rank = rank, .world = size(), .epoch = 42, .nodes = nodes};
    member.engine = std::make_unique<engine::Engine>(place, *member.fabric, *member.waiter, member.failure);
  }
}

World World::over_sockets(uint32_t world, SocketKind kind, const tcp::Sizes& sizes) {
  World result(world);
  auto* ranks = result.ranks_.get();
  auto* connecting = result.connecting_.get();
  auto made = std::make_shared<std::set<std::tuple<Rank, Rank, Lane>>>();
  // Whoever asks first makes the pair and hands both ranks their end.
  const auto connect = [=](Rank from, Rank to, Lane lane) {
    const std::lock_guard lock(*connecting);
    if (!made->insert({std::min(from, to), std::max(from, to), lane}).second) return;
    auto [mine, yours] = socket_pair(kind);
    static_cast<tcp::TcpFabric&>(*(*ranks)[from].fabric).adopt(to, lane, std::move(mine));
    static_cast<tcp::TcpFabric&>(*(*ranks)[to].fabric).adopt(from, lane, std::move(yours));
    for (const Rank rank : {from, to}) (*ranks)[rank].waiter->ring();
  };
  for (Rank rank = 0; rank < world; rank++)
    (*ranks)[rank].fabric =
        std::make_unique<tcp::TcpFabric>([=](Rank peer, Lane lane) { connect(rank, peer, lane); }, sizes);
  result.start();
  return result;
}

World World::over_shm(uint32_t world, const shm::Sizes& sizes) {
  World result(world);
  auto* ranks = result.ranks_.get();
  std::vector<std::shared_ptr<shm::Area>> areas;
  for (Rank rank = 0; rank < world; rank++) {
    auto area = shm::Area::make({42, rank, world}, sizes);
    REQUIRE(area.ok());
    areas.push_back(std::make_shared<shm::Area>(std::move(*area)));
  }
  for (Rank rank = 0; rank < world; rank++) {
    auto fabric = std::make_unique<shm::ShmFabric>(areas[rank]);
    for (Rank peer = 0; peer < world; peer++)
      if (peer != rank) fabric->adopt(areas[peer], [=] { (*ranks)[peer].waiter->ring(); });
    (*ranks)[rank].fabric = std::move(fabric);
  }
  result.start();
  return result;
}

World World::over_lent_shm(uint32_t world, const shm::Sizes& sizes, size_t worth) {
  World result(world);
  auto* ranks = result.ranks_.get();
  result.lent_ = std::make_shared<LentRanks>(
      world, sizes, worth, [=](Rank peer) { return [=] { (*ranks)[peer].waiter->ring(); }; });
  REQUIRE(result.lent_->fabrics.size() == world);
  for (Rank rank = 0; rank < world; rank++) {
    (*ranks)[rank].fabric = std::move(result.lent_->fabrics[rank]);
    for (int i = 0; i < 3; i++) {
      auto memory = allocate(9 << 20);
      REQUIRE(memory.ok());
      result.buffers_.push_back(std::move(*memory));
    }
  }
  result.postmen_ = std::make_unique<Postmen>(result.lent_);
  result.start();
  return result;
}

World World::over_pulled_shm(const shm::Sizes& sizes, size_t pulled) {
  World result(2);
  auto* ranks = result.ranks_.get();
  result.lent_ = std::make_shared<LentRanks>(
      2, sizes, SIZE_MAX, [=](Rank peer) { return [=] { (*ranks)[peer].waiter->ring(); }; },
      Pulling{{0, 1}, pulled});
  REQUIRE(result.lent_->fabrics.size() == 2);
  for (Rank rank = 0; rank < 2; rank++) (*ranks)[rank].fabric = std::move(result.lent_->fabrics[rank]);
  result.start();
  return result;
}

uint64_t World::bytes_referred() const {
  uint64_t bytes = 0;
  for (const Member& member : *ranks_) bytes += static_cast<shm::ShmFabric&>(*member.fabric).bytes_referred();
  return bytes;
}

World World::over_fake(uint32_t world, LinkCaps caps, const fake::Faults& faults) {
  World result(world);
  auto* ranks = result.ranks_.get();
  result.network_ = std::make_unique<fake::Network>(world, caps, faults,
                                                    [ranks](Rank rank) { (*ranks)[rank].waiter->ring(); });
  for (Rank rank = 0; rank < world; rank++) (*ranks)[rank].fabric = result.network_->fabric(rank);
  result.start();
  return result;
}

void World::fail_all() {
  for (Member& member : *ranks_) {
    member.failure.set({ErrorCode::aborted, "another rank failed"});
    member.waiter->ring();
  }
}

void World::run(const std::function<void(Rank, engine::Engine&)>& body) {
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size(); rank++) threads.emplace_back([&, rank] { body(rank, engine(rank)); });
  for (auto& thread : threads) thread.join();
}

}  // namespace rondo::test
